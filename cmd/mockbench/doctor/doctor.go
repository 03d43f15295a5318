// Package doctor is the command "mockbench doctor": it looks at the settings of a run and at what discovery holds, and
// says why a frontend would not list, route to or hear a worker, and what to do about it. It changes nothing.
package doctor

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mockbench/cmd/mockbench/app"
	"mockbench/cmd/mockbench/flags"
	"mockbench/cmd/mockbench/settings"
)

const usage = `usage: mockbench doctor [--frontend-namespace NAME] [flags of a run]

Looks at the settings that the flags come to, the environment, the discovery backend and its records, the model's files
and the ports, and says why a frontend would not list, route to or hear a worker, and what to do.

A frontend lists the models of one namespace: that of --frontend-namespace, or of DYN_NAMESPACE or DYN_NAMESPACE_PREFIX
in the environment; without any of them, and with the namespace dynamo, those of all.

Exit status: 0 no problem was found, 1 there are problems, 2 wrong command line.
`

// Main runs the command and returns its exit status.
func Main(args []string, stdout, stderr io.Writer) int {
	if slices.Contains(args, "--help") || slices.Contains(args, "-h") {
		io.WriteString(stdout, usage)
		return 0
	}
	f, args, err := takeFrontend(args, os.Getenv)
	if err != nil {
		return flags.Fail(stderr, "mockbench doctor", err)
	}
	v, err := flags.Read(args, os.LookupEnv)
	if err != nil {
		return flags.Fail(stderr, "mockbench doctor", err)
	}
	var r Report
	r.examine(context.Background(), v, f)
	if err := r.Write(stdout); err != nil {
		return flags.Fail(stderr, "mockbench doctor", err)
	}
	if r.Count(Problem) > 0 {
		return 1
	}
	return 0
}

// examine looks at everything that can be looked at.
func (r *Report) examine(ctx context.Context, v *flags.Values, f Frontend) {
	r.environment(os.Environ())
	bare := settings.NoDemo // without flags it is about workers that others started
	if v.Text("--profile") != "" {
		bare = settings.Demo
	}
	s, err := settings.Resolve(v, os.LookupEnv, bare)
	if err == nil {
		err = settings.Refuse(v, s)
	}
	if err != nil {
		r.add(Problem, "settings", "correct it; mockbench config show lists all settings and where they come from", "%v", err)
	}
	if s == nil {
		return
	}
	for _, text := range slices.Concat(s.Deprecations, s.Warnings) {
		r.add(Warning, "settings", "", "%s", text)
	}
	r.ports(s)
	r.nats(ctx, s)
	own := r.ownCards(v, s)
	records, opened := r.openDiscovery(ctx, s)
	if !opened && own == nil {
		return
	}
	slices.SortFunc(records, func(a, b Record) int { return strings.Compare(a.name(), b.name()) })
	state := r.Diagnose(records, own)
	if opened {
		r.checkFrontend(state, f, own)
	}
	r.reachable(records)
	r.cardFiles(records, own)
}

// ownCards makes the cards of the workers that the flags describe; none if they describe none.
func (r *Report) ownCards(v *flags.Values, s *settings.Settings) (list []Own) {
	if s.Load != nil || !describesWorkers(v) {
		return nil
	}
	cards, err := app.Cards(s)
	if err != nil {
		r.add(Problem, "model", "correct --model-path", "%v", err)
		return nil
	}
	for i, c := range cards {
		text, err := json.Marshal(c)
		if err != nil {
			r.add(Problem, "model", "", "%v", err)
			continue
		}
		e, err := settings.ParseEndpoint(s.Pools[i].Endpoint)
		if err != nil {
			r.add(Problem, "--endpoint", "", "%v", err)
			continue
		}
		list = append(list, Own{Endpoint: e, Card: text})
	}
	return list
}

// describesWorkers reports whether the command line is about workers, not only about where to look.
func describesWorkers(v *flags.Values) bool {
	return slices.ContainsFunc(v.FromCommandLine(), func(given flags.Value) bool {
		return given.Flag.Name == "--profile" || !given.Flag.Ours && given.Flag.Name != "--discovery-backend"
	})
}

// cardFiles checks the files of all cards.
func (r *Report) cardFiles(records []Record, own []Own) {
	cache := ""
	if home, err := os.UserHomeDir(); err == nil {
		cache = filepath.Join(home, ".cache", "dynamo", "mdc", "blobs")
	}
	for i := range records {
		var b body
		if records[i].Age <= lease && json.Unmarshal(records[i].Text, &b) == nil && b.Type == "Model" {
			r.files(records[i].name(), b.Card, cache)
		}
	}
	for i, o := range own {
		r.files(ownName(i), o.Card, cache)
	}
}
