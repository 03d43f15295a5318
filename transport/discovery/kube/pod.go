// Package kube is discovery through Kubernetes: the records of a pod's worker are the content of one custom resource,
// which is written whole whenever one of them changes. Whether the worker is ready is not said here: frontends read that
// from the endpoint slices of a service in front of the pods.
package kube

import (
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"strings"

	"mockbench/engine"
)

const (
	podInfo          = "/etc/podinfo" // where the downward API is mounted
	defaultNamespace = "default"
	mainContainer    = "main"
)

// Pod says who this process is.
type Pod struct {
	Name      string
	UID       string
	Namespace string
	Container string // of mode "container", else empty
}

// PodFromEnvironment reads the pod's identity from the files in dir, which is /etc/podinfo if empty, else from POD_NAME,
// POD_UID and POD_NAMESPACE; DYN_KUBE_DISCOVERY_MODE and CONTAINER_NAME say whether a container counts for itself.
func PodFromEnvironment(dir string, getenv func(string) string) (p Pod, warnings []string, err error) {
	if dir == "" {
		dir = podInfo
	}
	read := func(file, variable string) string {
		if b, err := os.ReadFile(filepath.Join(dir, file)); err == nil {
			if text := strings.TrimSpace(string(b)); text != "" {
				return text
			}
		}
		return getenv(variable)
	}
	p = Pod{Name: read("pod_name", "POD_NAME"), UID: read("pod_uid", "POD_UID"), Namespace: read("pod_namespace", "POD_NAMESPACE")}
	for _, need := range [][3]string{{p.Name, "POD_NAME", "pod_name"}, {p.UID, "POD_UID", "pod_uid"}} {
		if need[0] == "" {
			return p, nil, missing(need[1], "must be set for kubernetes discovery, or be in the file "+filepath.Join(dir, need[2]))
		}
	}
	if p.Namespace == "" {
		p.Namespace = defaultNamespace
		warnings = append(warnings, "POD_NAMESPACE is not set, "+defaultNamespace+" is used")
	}
	switch mode := getenv("DYN_KUBE_DISCOVERY_MODE"); mode {
	case "", "pod":
	case "container":
		if p.Container = getenv("CONTAINER_NAME"); p.Container == "" {
			return p, warnings, missing("CONTAINER_NAME", "must be set with DYN_KUBE_DISCOVERY_MODE=container")
		}
	default:
		return p, warnings, &engine.SettingError{Setting: "DYN_KUBE_DISCOVERY_MODE", Kind: engine.KindRange,
			Given: fmt.Sprintf("%q", mode), Allowed: "must be pod or container"}
	}
	return p, warnings, nil
}

func missing(name, allowed string) error {
	return &engine.SettingError{Setting: name, Kind: engine.KindRange, Given: "nothing", Allowed: allowed}
}

// Resource is the name of the custom resource of the pod, or of its container.
func (p Pod) Resource() string {
	if p.Container == "" || p.Container == mainContainer {
		return p.Name
	}
	return p.Name + "-" + p.Container
}

const idMask = 1<<53 - 1

// InstanceID derives the instance id of a worker from the name of its custom resource. Frontends derive it too.
func InstanceID(resource string) uint64 {
	return sipHash13(append([]byte(resource), 0xff)) & idMask
}

// sipHash13 is SipHash with one compression and three finalization rounds and a key of zeros.
func sipHash13(b []byte) uint64 {
	v := [4]uint64{0x736f6d6570736575, 0x646f72616e646f6d, 0x6c7967656e657261, 0x7465646279746573}
	round := func() {
		v[0] += v[1]
		v[1] = bits.RotateLeft64(v[1], 13) ^ v[0]
		v[0] = bits.RotateLeft64(v[0], 32)
		v[2] += v[3]
		v[3] = bits.RotateLeft64(v[3], 16) ^ v[2]
		v[0] += v[3]
		v[3] = bits.RotateLeft64(v[3], 21) ^ v[0]
		v[2] += v[1]
		v[1] = bits.RotateLeft64(v[1], 17) ^ v[2]
		v[2] = bits.RotateLeft64(v[2], 32)
	}
	word := func(w uint64) {
		v[3] ^= w
		round()
		v[0] ^= w
	}
	last := uint64(len(b)) << 56
	for ; len(b) >= 8; b = b[8:] {
		word(leWord(b[:8]))
	}
	word(last | leWord(b))
	v[2] ^= 0xff
	for range 3 {
		round()
	}
	return v[0] ^ v[1] ^ v[2] ^ v[3]
}

// leWord reads up to eight bytes as a little-endian number.
func leWord(b []byte) (w uint64) {
	for i, c := range b {
		w |= uint64(c) << (8 * i)
	}
	return w
}
