package settings

import (
	"fmt"
	"strings"
	"unicode"

	"mockbench/engine"
)

// Endpoint is where workers are registered.
type Endpoint struct {
	Text                       string // as given or made up
	Namespace, Component, Name string // set by Parse
}

const scheme = "dyn://"

// endpointText returns the endpoint as given, or the default of the role.
func (r *resolver) endpointText() string {
	if r.given("--endpoint") {
		return r.v.Text("--endpoint")
	}
	namespace, set := r.lookup("DYN_NAMESPACE")
	if set && namespace == "" {
		r.warn("DYN_NAMESPACE is empty, which counts as unset; the namespace is dynamo")
	}
	if namespace == "" {
		namespace = "dynamo"
	}
	if suffix, _ := r.lookup("DYN_NAMESPACE_WORKER_SUFFIX"); suffix != "" {
		namespace += "-" + suffix
	}
	component := "backend"
	if r.s.Role == engine.PrefillRole {
		component = "prefill"
	}
	return scheme + namespace + "." + component + ".generate"
}

// Parse splits the text into its three names. Missing ones become NS, C and E, as in the reference.
func (e *Endpoint) Parse() error {
	rest, ok := strings.CutPrefix(e.Text, scheme)
	if !ok {
		return wrongFlag("--endpoint", fmt.Sprintf("%q", e.Text), "must start with "+scheme)
	}
	parts := strings.FieldsFunc(strings.Trim(rest, " ./"), func(c rune) bool { return c == '.' || c == '/' })
	e.Namespace, e.Component, e.Name = "NS", "C", "E"
	switch len(parts) {
	case 0:
	case 1:
		e.Component = parts[0]
	case 2:
		e.Namespace, e.Component = parts[0], parts[1]
	default:
		e.Namespace, e.Component, e.Name = parts[0], parts[1], strings.Join(parts[2:], "_")
	}
	if !strings.ContainsFunc(e.Namespace, func(c rune) bool { return c < unicode.MaxASCII && (unicode.IsLetter(c) || unicode.IsDigit(c)) }) {
		return wrongFlag("--endpoint", fmt.Sprintf("namespace %q", e.Namespace), "must hold an ASCII letter or digit")
	}
	return nil
}
