package discovery

import (
	"errors"
	"testing"

	"mockbench/engine"
)

func TestMemory(t *testing.T) {
	m := OpenMemory()
	i := Instance{Endpoint: Endpoint{"a", "b", "c"}, ID: 7}
	if err := Publish(t.Context(), m, i); err != nil {
		t.Fatal(err)
	}
	if list, _ := m.List(t.Context(), Instances); len(list) != 1 {
		t.Errorf("got %v", list)
	}
	if err := m.Delete(t.Context(), i.Key()); err != nil {
		t.Fatal(err)
	}
	if list, _ := m.List(t.Context(), Instances); len(list) != 0 {
		t.Errorf("got %v", list)
	}
	m.Close(t.Context())
	if err := Publish(t.Context(), m, i); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestDefaults(t *testing.T) {
	env := func(m map[string]string) func(string) string { return func(k string) string { return m[k] } }
	if e := DefaultEndpoint(engine.PrefillRole, env(nil)); e != (Endpoint{"dynamo", "prefill", "generate"}) {
		t.Errorf("got %v", e)
	}
	e := DefaultEndpoint(engine.Aggregated, env(map[string]string{"DYN_NAMESPACE": "team-a", "DYN_NAMESPACE_WORKER_SUFFIX": "x"}))
	if e != (Endpoint{"team-a-x", "backend", "generate"}) {
		t.Errorf("got %v", e)
	}
	lookup := func(m map[string]string) func(string) (string, bool) {
		return func(k string) (string, bool) { v, ok := m[k]; return v, ok }
	}
	for _, c := range []struct {
		env  map[string]string
		want string
	}{
		{nil, "cuda"}, {map[string]string{"CUDA_VISIBLE_DEVICES": ""}, "cpu"}, {map[string]string{"CUDA_VISIBLE_DEVICES": "0"}, "cuda"},
		{map[string]string{"CUDA_VISIBLE_DEVICES": " None"}, "cpu"}, {map[string]string{"NVIDIA_VISIBLE_DEVICES": ""}, "cuda"},
		{map[string]string{"NVIDIA_VISIBLE_DEVICES": "void"}, "cpu"},
	} {
		if got := Device(lookup(c.env)); got != c.want {
			t.Errorf("%v: got %s, want %s", c.env, got, c.want)
		}
	}
}

func TestCheckModel(t *testing.T) {
	m := OpenMemory()
	e := Endpoint{"a", "b", "c"}
	if err := Publish(t.Context(), m, Model{Endpoint: e, ID: 1, Card: []byte(`{"display_name":"one","source_path":"/m/one"}`)}); err != nil {
		t.Fatal(err)
	}
	for own, clashes := range map[[2]string]bool{
		{"one", ""}:           false,
		{"one", "/m/other"}:   false,
		{"alias", "/m/one"}:   false,
		{"other", "/m/other"}: true,
		{"/m/one", ""}:        true,
	} {
		if err := CheckModel(t.Context(), m, e, own[0], own[1]); (err != nil) != clashes {
			t.Errorf("%q: got %v", own, err)
		}
		if err := CheckModel(t.Context(), m, Endpoint{"a", "b", "cc"}, own[0], own[1]); err != nil {
			t.Errorf("%q at another endpoint: got %v", own, err)
		}
	}
}
