package modelcard

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"mockbench/engine"
)

// Topology says in which domains a worker is, for transfers between prefill and decode workers.
type Topology struct {
	Domains     map[string]string // value by domain
	Domain      string            // the one that transfers must or should stay in
	Enforcement string
	Weight      *float32
}

func (t Topology) taints() (list []string) {
	for domain, value := range t.Domains {
		list = append(list, fmt.Sprintf("dynamo.topology/%s=%s", domain, value))
	}
	slices.Sort(list)
	return list
}

// topologyWait is how long the file of the transfer domain may take to appear.
const topologyWait = 30 * time.Second

// ReadTopology reads the topology that the environment describes; it is empty if DYN_TOPOLOGY_ENABLED is not true.
func ReadTopology(getenv func(string) string) (t Topology, err error) {
	if !truthy(getenv("DYN_TOPOLOGY_ENABLED")) {
		return t, nil
	}
	dir := getenv("DYN_TOPOLOGY_MOUNT_PATH")
	if dir == "" {
		dir = "/etc/dynamo/topology"
	}
	t.Domain = strings.TrimSpace(getenv("DYN_KV_TRANSFER_DOMAIN"))
	if t.Domain == "" {
		return t, topologyError("DYN_KV_TRANSFER_DOMAIN", engine.KindMissing, "", "must name a domain when DYN_TOPOLOGY_ENABLED is true")
	}
	for deadline := time.Now().Add(topologyWait); ; time.Sleep(time.Second) {
		t.Domains = readDomains(dir)
		if _, ok := t.Domains[t.Domain]; ok {
			break
		}
		if time.Now().After(deadline) {
			return t, topologyError("DYN_KV_TRANSFER_DOMAIN", engine.KindRange, t.Domain,
				fmt.Sprintf("must be a non-empty file in %s within %v", dir, topologyWait))
		}
	}
	if t.Enforcement = getenv("DYN_KV_TRANSFER_ENFORCEMENT"); t.Enforcement == "" {
		t.Enforcement = "required"
	}
	if text := getenv("DYN_KV_TRANSFER_PREFERRED_WEIGHT"); text != "" {
		w, err := strconv.ParseFloat(text, 32)
		if err != nil || !(w >= 0 && w <= 1) {
			return t, topologyError("DYN_KV_TRANSFER_PREFERRED_WEIGHT", engine.KindRange, text, "must be between 0 and 1")
		}
		weight := float32(w)
		t.Weight = &weight
	} else if t.Enforcement == "preferred" {
		return t, topologyError("DYN_KV_TRANSFER_PREFERRED_WEIGHT", engine.KindMissing, "", "must be given with the enforcement preferred")
	}
	return t, nil
}

func topologyError(setting string, kind engine.Kind, given, allowed string) error {
	return &engine.SettingError{Setting: setting, Kind: kind, Given: given, Allowed: allowed}
}

// readDomains returns the trimmed content of every visible file by name.
func readDomains(dir string) map[string]string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	domains := map[string]string{}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if value := strings.TrimSpace(string(data)); err == nil && value != "" && !strings.HasPrefix(e.Name(), ".") {
			domains[e.Name()] = value
		}
	}
	return domains
}

func truthy(s string) bool {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "1", "true", "on", "yes":
		return true
	}
	return false
}
