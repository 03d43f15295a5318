package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"mockbench/cmd/mockbench/flags"
	"mockbench/cmd/mockbench/settings"
	"mockbench/transport/natsconn"
)

// Frontend is what is known of the frontend that is to list the workers.
type Frontend struct {
	Namespace string // of which it lists models: exactly this one
	Prefix    string // or those that begin with this; comes first
	Plane     string // by which it sends requests; empty if unknown
}

// globalNamespace stands for all namespaces, as none does.
const globalNamespace = "dynamo"

// frontendFlag names the frontend's namespace where the environment here is not the frontend's.
const frontendFlag = "--frontend-namespace"

// takeFrontend reads what is known of the frontend from its flag, which it takes out of the arguments, and from the
// environment.
func takeFrontend(args []string, getenv func(string) string) (f Frontend, rest []string, err error) {
	f = Frontend{Namespace: getenv("DYN_NAMESPACE"), Prefix: getenv("DYN_NAMESPACE_PREFIX"), Plane: getenv("DYN_REQUEST_PLANE")}
	for i := 0; i < len(args); i++ {
		name, value, joined := strings.Cut(args[i], "=")
		switch {
		case name != frontendFlag:
			rest = append(rest, args[i])
			continue
		case joined:
		case i+1 < len(args):
			i++
			value = args[i]
		default:
			return f, nil, &flags.UsageError{Text: frontendFlag + ": needs a namespace"}
		}
		f.Namespace, f.Prefix = value, ""
	}
	return f, rest, nil
}

// lists reports whether the frontend lists the models of a namespace.
func (f *Frontend) lists(namespace string) bool {
	switch {
	case f.Prefix != "":
		return strings.HasPrefix(namespace, f.Prefix)
	case f.Namespace == "" || f.Namespace == globalNamespace:
		return true
	}
	return namespace == f.Namespace
}

func (f *Frontend) String() string {
	switch {
	case f.Prefix != "":
		return "a frontend with --namespace-prefix " + f.Prefix
	case f.Namespace == "":
		return "a frontend without --namespace"
	}
	return "a frontend with --namespace " + f.Namespace
}

// checkFrontend says which of the registered workers a frontend lists and can send requests to.
func (r *Report) checkFrontend(s *state, f Frontend, own []Own) {
	models, planes, count := map[string][]string{}, map[string][]string{}, map[string]int{}
	for _, w := range s.workers {
		if w.card == nil || w.instance == nil {
			continue
		}
		n := w.endpoint.Namespace
		count[n]++
		if !slices.Contains(models[n], w.card.DisplayName) {
			models[n] = append(models[n], w.card.DisplayName)
		}
		planes[w.plane()] = append(planes[w.plane()], w.String())
	}
	if len(s.workers) == 0 {
		level := Problem
		if len(own) > 0 {
			level = Note // it may be meant to be the first
		}
		r.add(level, "records", "check that workers and frontend have the same backend, and with file the same DYN_FILE_KV", "no worker is registered here")
		return
	}
	listed := 0
	for _, n := range slices.Sorted(maps.Keys(count)) {
		subject := "namespace " + n
		what := fmt.Sprintf("%d workers of %s", count[n], strings.Join(models[n], ", "))
		if f.lists(n) {
			listed++
			r.add(OK, subject, "", "%s: %s lists them, one with another --namespace (DYN_NAMESPACE) does not", what, &f)
			continue
		}
		r.add(Warning, subject, "start the workers with --endpoint dyn://"+cmp.Or(f.Prefix, f.Namespace)+".COMPONENT.ENDPOINT, or the frontend with --namespace "+n,
			"%s: %s does not list them", what, &f)
	}
	if len(count) > 0 && listed == 0 && !slices.ContainsFunc(own, func(o Own) bool { return f.lists(o.Endpoint.Namespace) }) {
		r.add(Problem, "namespaces", "", "%s lists no model: all workers are elsewhere", &f)
	}
	for _, plane := range slices.Sorted(maps.Keys(planes)) {
		if f.Plane != "" && f.Plane != plane {
			r.add(Problem, planes[plane][0], "give both the same --request-plane (DYN_REQUEST_PLANE)",
				"takes requests by %s, like %d in all; a frontend whose request plane is %s cannot send it any", plane, len(planes[plane]), f.Plane)
			continue
		}
		r.add(OK, "request plane", "", "%d workers take requests by %s: the frontend's --request-plane (DYN_REQUEST_PLANE, tcp if unset) must be the same",
			len(planes[plane]), plane)
	}
}

// plane is how a worker takes requests.
func (w *worker) plane() string {
	var t struct {
		NATS *string `json:"nats_tcp"`
	}
	if json.Unmarshal(w.instance.Transport, &t) == nil && t.NATS != nil {
		return "nats"
	}
	return "tcp"
}

// nats checks that the NATS server answers, if a run would need it.
func (r *Report) nats(ctx context.Context, s *settings.Settings) {
	if s.Load != nil || s.Planes.EmbeddedNATS || s.Planes.Request != "nats" && s.Planes.Event != "nats" {
		return
	}
	const advice = "start the server, correct NATS_SERVER, or give --embedded-nats"
	c, err := natsconn.FromEnvironment(os.Getenv)
	if err != nil {
		r.add(Problem, "NATS", "", "%v", err)
		return
	}
	c.Startup = 0 // one attempt
	conn, err := natsconn.Connect(ctx, c, "mockbench doctor", nil)
	if err != nil {
		r.add(Problem, "NATS", advice, "no server answers at %s: %v", c.Redacted(), err)
		return
	}
	conn.Close()
	r.add(OK, "NATS", "", "a server answers at %s", c.Redacted())
}
