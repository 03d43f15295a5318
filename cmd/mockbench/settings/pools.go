package settings

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"mockbench/cmd/mockbench/flags"
	"mockbench/engine"
	"mockbench/profiles"
	"mockbench/transport/discovery"
)

// Pool is the workers of one role. Workers are numbered across pools.
type Pool struct {
	Role     engine.Role // as registered; the engine has its own
	First    int         // number of its first worker
	Workers  int
	Endpoint string // where they are registered, dyn://namespace.component.name
	Launch   *profiles.Launch
}

// Split reports whether the process has prefill and decode workers.
func (s *Settings) Split() bool { return len(s.Pools) > 1 }

// PoolOf returns the pool of a worker.
func (s *Settings) PoolOf(worker int) *Pool {
	p := &s.Pools[0]
	for i := range s.Pools {
		if s.Pools[i].First <= worker {
			p = &s.Pools[i]
		}
	}
	return p
}

// ParseEndpoint splits the text of an endpoint into its three names. Missing ones become NS, C and E, as in the
// reference.
func ParseEndpoint(text string) (discovery.Endpoint, error) {
	e, err := discovery.ParseEndpoint(text, discovery.Endpoint{Namespace: "NS", Component: "C", Name: "E"})
	if err != nil {
		return e, fmt.Errorf("--%w", err)
	}
	named := func(c rune) bool { return c < unicode.MaxASCII && (unicode.IsLetter(c) || unicode.IsDigit(c)) }
	if !strings.ContainsFunc(e.Namespace, named) {
		return e, wrongFlag("--endpoint", fmt.Sprintf("namespace %q", e.Namespace), "must hold an ASCII letter or digit")
	}
	return e, nil
}

// rolePair are the flags of a process with workers of both roles.
var rolePair = [2]string{"--prefill-workers", "--decode-workers"}

// pools settles how many workers of which role there are, and where they are registered.
func (r *resolver) pools() error {
	r.s.Model = Model{Path: r.v.Text("--model-path"), Name: r.v.Text("--model-name")}
	r.s.Model.NoName = r.given("--model-name") && r.s.Model.Name == ""
	if r.given(rolePair[0]) || r.given(rolePair[1]) || r.splitProfile() {
		return r.twoPools()
	}
	role, err := r.role()
	if err != nil {
		return err
	}
	p := Pool{Role: role}
	switch n := r.v.Get("--num-workers"); {
	case n.Source == flags.FromDefault && r.from != nil:
		p.Workers = int(r.from.Workers)
	case !n.Int.IsInt64() || n.Int.Int64() < 1 || n.Int.Int64() > math.MaxInt32:
		return wrongFlag("--num-workers", n.Int.String(), "must be at least 1")
	default:
		p.Workers = int(n.Int.Int64())
	}
	r.addPool(p)
	return nil
}

func (r *resolver) role() (engine.Role, error) {
	mode := r.v.Text("--disaggregation-mode")
	role, err := WorkerRole(mode, r.v.On("--is-prefill-worker"), r.v.On("--is-decode-worker"))
	if err == nil && role == engine.Aggregated && mode == "" && r.from != nil {
		return r.from.Role(), nil
	}
	return role, err
}

// WorkerRole returns the role of the workers that --disaggregation-mode asks for, or one of the two flags that it has
// replaced; nothing is aggregated. Errors are *engine.SettingError: the flags exclude one another, even where they agree.
func WorkerRole(mode string, isPrefill, isDecode bool) (engine.Role, error) {
	switch {
	case isPrefill && isDecode:
		return "", conflict("--is-prefill-worker", "excludes --is-decode-worker, a worker has one role")
	case (isPrefill || isDecode) && mode != "":
		return "", conflict("--is-prefill-worker, --is-decode-worker", "cannot be combined with --disaggregation-mode %s, which does the same", mode)
	case isPrefill || mode == "prefill":
		return engine.PrefillRole, nil
	case isDecode || mode == "decode":
		return engine.DecodeRole, nil
	case mode == "" || mode == "agg":
		return engine.Aggregated, nil
	}
	return "", wrongWord("--disaggregation-mode", mode, []string{"agg", "prefill", "decode"})
}

// splitProfile reports whether the profile has workers of both roles and no flag says otherwise.
func (r *resolver) splitProfile() bool {
	if r.from == nil || r.from.PrefillWorkers == 0 {
		return false
	}
	return !slices.ContainsFunc([]string{"--num-workers", "--disaggregation-mode", "--is-prefill-worker", "--is-decode-worker"}, r.given)
}

// ofProfile returns the workers of the profile in the order of rolePair, 0 if it does not say.
func (r *resolver) ofProfile() [2]uint64 {
	if r.from == nil {
		return [2]uint64{}
	}
	return [2]uint64{uint64(r.from.PrefillWorkers), uint64(r.from.DecodeWorkers)}
}

// twoPools settles the workers of a process that has both roles.
func (r *resolver) twoPools() error {
	usual := r.ofProfile()
	for i, name := range rolePair {
		if !r.given(name) && usual[i] == 0 {
			return &flags.UsageError{
				Text: fmt.Sprintf("%s: needs %s, the process then has workers of both roles", rolePair[1-i], name)}
		}
	}
	for _, name := range []string{"--num-workers", "--disaggregation-mode", "--is-prefill-worker", "--is-decode-worker",
		"--endpoint"} {
		if r.given(name) {
			return &flags.UsageError{Text: fmt.Sprintf("%s: cannot be combined with %s and %s", name, rolePair[0], rolePair[1])}
		}
	}
	for i, role := range []engine.Role{engine.PrefillRole, engine.DecodeRole} {
		n, err := usual[i], error(nil)
		if r.given(rolePair[i]) {
			n, err = r.count(rolePair[i], 1, mostRanks)
		}
		if err != nil {
			return err
		}
		r.addPool(Pool{Role: role, Workers: int(n)})
	}
	return nil
}

func (r *resolver) addPool(p Pool) {
	p.First, p.Endpoint = r.s.Workers, r.endpointText(p.Role)
	r.s.Pools, r.s.Workers = append(r.s.Pools, p), r.s.Workers+p.Workers
}

// endpointText returns the endpoint as given, or the default of the role.
func (r *resolver) endpointText(role engine.Role) string {
	if r.given("--endpoint") {
		return r.v.Text("--endpoint")
	}
	const empty = "DYN_NAMESPACE is empty, which counts as unset; the namespace is dynamo"
	if text, set := r.lookup("DYN_NAMESPACE"); set && text == "" && !slices.Contains(r.s.Warnings, empty) {
		r.warn(empty)
	}
	e := discovery.DefaultEndpoint(role, func(name string) string { text, _ := r.lookup(name); return text })
	return "dyn://" + e.Namespace + "." + e.Component + "." + e.Name
}

// launchPools resolves the engine object of each pool.
func (r *resolver) launchPools(o *profiles.Object) error {
	for i := range r.s.Pools {
		p, own := &r.s.Pools[i], o
		if r.s.Split() {
			own = o.Clone()
			own.Set("engine.worker_type", string(p.Role))
			const timing = "engine.timing_model.config.worker_type"
			if _, set := own.Get(timing); set {
				own.Set(timing, string(p.Role))
			}
		}
		l, err := profiles.Resolve(own)
		if err != nil {
			return err
		}
		p.Launch = l
		if i == 0 {
			r.s.Launch, r.s.Base = l, own
			r.s.Warnings = append(r.s.Warnings, l.Warnings...)
		}
	}
	return nil
}

// WorkersFlag names the flags that say how many workers there are.
func (s *Settings) WorkersFlag() string {
	if s.Split() {
		return rolePair[0] + ", " + rolePair[1]
	}
	return "--num-workers"
}
