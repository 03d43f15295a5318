package doctor

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"mockbench/transport/discovery"
	"mockbench/transport/modelcard"
)

// lease is how long a record of the file backend lives without a sign of life.
const lease = 10 * time.Second

// state is what discovery says, put together by worker.
type state struct {
	workers  []*worker // in order of endpoint and id
	queries  map[uint64]map[string]bool
	channels map[uint64]*body // of KV events, by publisher
	sources  []*body
}

// Diagnose reads records and says why a frontend would not list, route to or hear a worker. own are the cards of the
// workers that are to be started.
func (r *Report) Diagnose(records []Record, own []Own) *state {
	s := r.parse(records)
	for _, w := range s.workers {
		r.checkWorker(w)
		r.checkEvents(s, w)
	}
	r.checkSources(s)
	r.checkSums(s, own)
	r.checkReadiness(s, own)
	r.add(OK, "records", "", "%d workers, %d sources of KV events", len(s.workers), len(s.sources))
	return s
}

// parse puts records together. What frontends cannot read is a finding.
func (r *Report) parse(records []Record) *state {
	s := &state{queries: map[uint64]map[string]bool{}, channels: map[uint64]*body{}}
	byKey := map[discovery.Key]*worker{}
	find := func(b *body) *worker {
		e := discovery.Endpoint{Namespace: b.Namespace, Component: b.Component, Name: b.Endpoint}
		key := discovery.Instance{Endpoint: e, ID: b.ID}.Key()
		if byKey[key] == nil {
			byKey[key] = &worker{endpoint: e, id: b.ID}
			s.workers = append(s.workers, byKey[key])
		}
		return byKey[key]
	}
	for i := range records {
		rec := &records[i]
		b := r.readable(rec)
		switch {
		case b == nil:
		case b.Type == "Endpoint" && strings.HasPrefix(b.Endpoint, queryPrefix):
			if s.queries[b.ID] == nil {
				s.queries[b.ID] = map[string]bool{}
			}
			s.queries[b.ID][b.Endpoint] = true
		case b.Type == "Endpoint":
			find(b).instance = b
		case b.Type == "Model":
			w := find(b)
			w.cardText, w.card = b.Card, &card{}
			if err := json.Unmarshal(b.Card, w.card); err != nil {
				w.card = nil
				r.add(Problem, rec.name(),
					"restart the worker; nothing else than the worker may write its records",
					"its card cannot be read, frontends skip it: %v", err)
			}
		case b.Type == "EventChannel" && b.Topic == "kv-events":
			s.channels[b.ID] = b
		case b.Type == "EventSource":
			s.sources = append(s.sources, b)
		}
	}
	slices.SortFunc(s.workers, func(a, b *worker) int {
		return cmp.Or(cmp.Compare(a.endpoint.String(), b.endpoint.String()), cmp.Compare(a.id, b.id))
	})
	return s
}

// readable returns the record if frontends can make use of it.
func (r *Report) readable(rec *Record) *body {
	var b body
	if err := json.Unmarshal(rec.Text, &b); err != nil {
		r.add(Problem, rec.name(),
			"delete it and restart its worker; records must be written to another name and renamed, a frontend reads them once",
			"is no JSON record, frontends skip it and the worker stays invisible: %v", err)
		return nil
	}
	switch want := b.place(); {
	case want == discovery.Key{}:
		r.add(Warning, rec.name(), "", "is of an unknown type %q, frontends skip it", b.Type)
		return nil
	case want.Bucket != rec.Bucket || want.Path != rec.Path:
		r.add(Problem, rec.name(), "delete it; its worker will not",
			"lies under another name than its content says (%s/%s): a ghost that frontends keep after the worker has gone",
			strings.TrimPrefix(want.Bucket, "v1/"), want.Path)
		return nil
	}
	if rec.Age > lease {
		r.add(Warning, rec.name(),
			"restart its worker if it still runs; else it goes away as soon as any process uses the folder",
			"its owner gave no sign of life for %s, frontends drop it after %s: the process is dead, stopped or was asleep", rec.Age.Round(time.Second), lease)
		return nil
	}
	return &b
}

// checkWorker checks that a frontend lists a worker and can reach it.
func (r *Report) checkWorker(w *worker) {
	switch {
	case w.card == nil && w.cardText == nil:
		r.add(Problem, w.String(), "restart the worker",
			"has an instance record and no model card: frontends do not list its model")
		return
	case w.instance == nil:
		r.add(Problem, w.String(), "wait if it is starting, else restart it",
			"has a model card and no instance record: frontends list nothing and send it no request")
	case w.card == nil:
		return // was said already
	}
	for _, f := range []struct {
		name string
		file json.RawMessage
	}{{"config.json (model_info)", w.card.ModelInfo}, {"tokenizer", w.card.Tokenizer}} {
		if len(f.file) == 0 || string(f.file) == "null" {
			r.add(Problem, w.String(), "start it with a --model-path that has one",
				"its card names no %s: frontends try for ever and never list it", f.name)
		}
	}
}

// checkEvents checks that routers hear a worker's KV events.
func (r *Report) checkEvents(s *state, w *worker) {
	if w.card == nil || !w.card.Runtime.Events || w.instance == nil {
		return
	}
	heard := map[int]bool{}
	for _, source := range s.sources {
		if source.Metadata.Worker.ID == w.id {
			heard[source.Metadata.Worker.Rank] = true
		}
	}
	for rank := w.card.Runtime.StartRank; rank < w.card.Runtime.StartRank+max(1, w.card.Runtime.Ranks); rank++ {
		if !heard[rank] {
			r.add(Problem, w.String(), "restart it; a router with --no-router-kv-events does not need them",
				"its card promises KV events and rank %d has no source record: routers take its cache for empty", rank)
		}
	}
}

// checkSources checks that what event sources point at is there.
func (r *Report) checkSources(s *state) {
	for _, source := range s.sources {
		owner := fmt.Sprintf("event source of worker %x rank %d", source.Metadata.Worker.ID, source.Metadata.Worker.Rank)
		if s.channels[source.Publisher] == nil {
			r.add(Problem, owner, "restart the worker", "has no event channel: routers do not know where to listen")
		}
		if !slices.ContainsFunc(s.workers, func(w *worker) bool { return w.id == source.Metadata.Worker.ID }) {
			r.add(Warning, owner, "delete it if the worker has gone", "belongs to a worker that is not registered")
		}
		if t := source.Metadata.Recovery; t != nil && !s.queries[t.ID][t.Endpoint] {
			r.add(Problem, owner, "restart the worker",
				"promises recovery at %s, which is not registered: routers show no live events of this rank until it answers", t.Endpoint)
		}
	}
}

// Own is a worker that is to be started.
type Own struct {
	Endpoint discovery.Endpoint
	Card     []byte
}

// group is what a frontend takes for workers of one kind.
func group(e discovery.Endpoint, c *card) string {
	return strings.Join([]string{c.DisplayName, e.String(), c.ModelType, c.WorkerType}, "\x00")
}

// checkSums compares the compatibility sums within each group: a frontend serves those that agree with the first one.
func (r *Report) checkSums(s *state, own []Own) {
	type member struct {
		name string
		text []byte
		sum  string
	}
	first := map[string]member{}
	compare := func(name string, e discovery.Endpoint, text []byte) {
		var c card
		if json.Unmarshal(text, &c) != nil {
			return
		}
		sum, err := modelcard.Sum(text)
		if err != nil {
			r.add(Problem, name, "", "%v", err)
			return
		}
		key := group(e, &c)
		other, known := first[key]
		if !known {
			first[key] = member{name, text, sum}
			return
		}
		if other.sum != sum {
			r.add(Problem, name,
				"give both the same model files, block size, length and router settings, or another --model-name",
				"does not fit together with %s, frontends serve only the kind that they saw first and ignore the other: %s",
				other.name, strings.Join(Differences(other.text, text), "; "))
		}
	}
	for _, w := range s.workers {
		if w.card != nil {
			compare(w.String(), w.endpoint, w.cardText)
		}
	}
	for i, o := range own {
		compare(ownName(i), o.Endpoint, o.Card)
	}
}

func ownName(i int) string {
	if i == 0 {
		return "your worker"
	}
	return fmt.Sprintf("your worker of pool %d", i+1)
}

// Differences names the fields of two cards that make their sums differ.
func Differences(a, b []byte) (list []string) {
	var x, y map[string]json.RawMessage
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return []string{"cannot be read"}
	}
	for _, field := range []string{"source_path", "model_info", "tokenizer", "prompt_formatter", "chat_template_file", "gen_config",
		"extra_files", "architectural_max_context_length", "context_length", "kv_cache_block_size", "needs", "router_config", "aliases"} {
		if p, q := checksums(x[field]), checksums(y[field]); p != q {
			list = append(list, fmt.Sprintf("%s differs (%s and %s)", field, cmp.Or(p, "none"), cmp.Or(q, "none")))
		}
	}
	if list == nil {
		list = []string{"runtime_config.context_length differs"}
	}
	return list
}

// checksums shortens a field to what counts in it: of files their checksums, not where they lie.
func checksums(field json.RawMessage) string {
	var found []string
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if sum, ok := v["checksum"].(string); ok {
				found = append(found, sum[:min(len(sum), 15)])
			}
			for _, inner := range v {
				walk(inner)
			}
		case []any:
			for _, inner := range v {
				walk(inner)
			}
		}
	}
	var v any
	if json.Unmarshal(field, &v) != nil {
		return string(field)
	}
	if walk(v); found != nil {
		slices.Sort(found)
		return strings.Join(found, ",")
	}
	text := string(field)
	if len(text) > 60 {
		text = text[:60] + "..."
	}
	return strings.TrimSpace(text)
}

// checkReadiness checks that each model has the kinds of workers that its workers need. Own workers count as there.
func (r *Report) checkReadiness(s *state, own []Own) {
	type model struct{ name, namespace string }
	present := map[model]map[string]bool{}
	needs := map[model]map[string][][]string{}
	registered := map[model]map[string]bool{}
	add := func(c *card, namespace string) {
		m := model{c.DisplayName, namespace}
		if present[m] == nil {
			present[m], needs[m] = map[string]bool{}, map[string][][]string{}
		}
		present[m][c.WorkerType], needs[m][c.WorkerType] = true, c.Needs
	}
	for _, w := range s.workers {
		if w.card != nil && w.instance != nil {
			add(w.card, w.endpoint.Namespace)
		}
	}
	for m, kinds := range present {
		registered[m] = maps.Clone(kinds)
	}
	for _, o := range own {
		var c card
		if json.Unmarshal(o.Card, &c) == nil {
			add(&c, o.Endpoint.Namespace)
		}
	}
	var models []model
	for m := range present {
		models = append(models, m)
	}
	slices.SortFunc(models, func(a, b model) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
	for _, m := range models {
		ready := true
		for _, kind := range []string{"aggregated", "prefill", "decode"} {
			if lacks, ok := lacking(needs[m][kind], present[m]); ok {
				ready = false
				r.add(Problem, fmt.Sprintf("model %q in namespace %s", m.name, m.namespace),
					"start one: --disaggregation-mode "+lacks+" --model-name "+m.name,
					"has a %s worker and no %s worker: frontends do not list it", kind, lacks)
			}
		}
		subject := fmt.Sprintf("model %q in namespace %s", m.name, m.namespace)
		switch {
		case ready && len(registered[m]) < len(present[m]):
			r.add(Note, subject, "", "has every kind of worker it needs when yours is started, which is not registered")
		case ready:
			r.add(OK, subject, "", "has every kind of worker it needs")
		}
	}
}

// lacking returns a type that is missing whatever alternative is taken.
func lacking(needs [][]string, present map[string]bool) (string, bool) {
	lacks := ""
	for _, all := range needs {
		i := slices.IndexFunc(all, func(kind string) bool { return !present[kind] })
		if i < 0 {
			return "", false
		}
		lacks = all[i]
	}
	return lacks, lacks != ""
}
