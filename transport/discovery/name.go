package discovery

import (
	"fmt"
	"strconv"
	"strings"

	"mockbench/engine"
)

// PublisherMask cuts a random number down to a publisher id.
const PublisherMask = 1<<53 - 1

// Segment encodes one segment of an event key or subject: everything but ASCII letters, digits, - and _ becomes %XX.
func Segment(s string) string { return encode(s, "-_") }

// FileName encodes a key path as the name of its file: everything but ASCII letters and digits becomes %XX.
func FileName(path string) string { return encode(path, "") }

func encode(s, keep string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(keep, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// keyPath undoes FileName. What is no escape stays as it is.
func keyPath(name string) string {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		if name[i] == '%' && i+2 < len(name) {
			if c, err := strconv.ParseUint(name[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(c))
				i += 2
				continue
			}
		}
		b.WriteByte(name[i])
	}
	return b.String()
}

// ParseEndpoint reads the value of --endpoint, dyn://namespace.component.name. Missing parts come from def; parts
// beyond the third belong to the name.
func ParseEndpoint(value string, def Endpoint) (Endpoint, error) {
	rest, ok := strings.CutPrefix(value, "dyn://")
	if !ok {
		return Endpoint{}, &engine.SettingError{Setting: "endpoint", Kind: engine.KindType, Given: fmt.Sprintf("%q", value),
			Allowed: "must start with dyn://, for example dyn://dynamo.backend.generate"}
	}
	var parts []string
	split := func(r rune) bool { return r == '.' || r == '/' }
	for _, p := range strings.FieldsFunc(strings.Trim(rest, " /."), split) {
		if p != "" {
			parts = append(parts, p)
		}
	}
	e := def
	switch len(parts) {
	case 0:
	case 1:
		e.Component = parts[0]
	case 2:
		e.Namespace, e.Component = parts[0], parts[1]
	default:
		e = Endpoint{parts[0], parts[1], strings.Join(parts[2:], "_")}
	}
	return e, nil
}

// DefaultEndpoint returns where a role is registered if nothing is said. getenv reads DYN_NAMESPACE and
// DYN_NAMESPACE_WORKER_SUFFIX; empty is unset.
func DefaultEndpoint(role engine.Role, getenv func(string) string) Endpoint {
	namespace := getenv("DYN_NAMESPACE")
	if namespace == "" {
		namespace = "dynamo"
	}
	if suffix := getenv("DYN_NAMESPACE_WORKER_SUFFIX"); suffix != "" {
		namespace += "-" + suffix
	}
	e := Endpoint{Namespace: namespace, Component: "backend", Name: "generate"}
	if role == engine.PrefillRole {
		e.Component = "prefill"
	}
	return e
}

// Device returns the device type a worker advertises. No device is looked for: only the variables that hide GPUs say
// "cpu".
func Device(lookup func(string) (string, bool)) string {
	hidden := func(v string, words ...string) bool {
		for _, w := range words {
			if strings.EqualFold(strings.TrimSpace(v), w) {
				return true
			}
		}
		return false
	}
	if v, set := lookup("CUDA_VISIBLE_DEVICES"); set && hidden(v, "", "-1", "none", "void") {
		return "cpu"
	}
	if v, set := lookup("NVIDIA_VISIBLE_DEVICES"); set && hidden(v, "none", "void") {
		return "cpu"
	}
	return "cuda"
}
