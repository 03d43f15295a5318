package profiles_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"mockbench/profiles"
)

//go:generate go test . -run "TestSchemasAreCurrent|TestDocumentation" -update

var update = flag.Bool("update", false, "write the schemas and the table of profiles in docs")

func indented(t testing.TB, s *profiles.Schema) []byte {
	t.Helper()
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(data, '\n')
}

func compiled(t testing.TB, s *profiles.Schema) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(indented(t, s)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

// plain returns a value as the schema library takes it.
func plain(t interface{ Fatal(...any) }, v any) any {
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestSchemasAreCurrent(t *testing.T) {
	for path, s := range map[string]*profiles.Schema{"profile.schema.json": profiles.ProfileSchema(), "engine.schema.json": profiles.EngineSchema()} {
		want := indented(t, s)
		if *update {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if have, err := os.ReadFile(path); err != nil || !bytes.Equal(have, want) {
			t.Errorf("%s is not current, run: go generate ./profiles (%v)", path, err)
		}
	}
}

func TestEverySettingIsDescribed(t *testing.T) {
	var look func(path string, s *profiles.Schema)
	look = func(path string, s *profiles.Schema) {
		for name, p := range s.Properties {
			if p.Description == "" {
				t.Errorf("%s.%s has no description", path, name)
			}
			look(path+"."+name, p)
		}
	}
	look("profile", profiles.ProfileSchema())
	look("engine", profiles.EngineSchema())
}

func TestShippedProfilesFollowTheSchema(t *testing.T) {
	schema := compiled(t, profiles.ProfileSchema())
	for _, name := range profiles.Names() {
		data, _, err := profiles.Store{}.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(decoded(t, string(data))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSchemaRefusesWhatIsWrong(t *testing.T) {
	schema := compiled(t, profiles.ProfileSchema())
	for _, text := range []string{
		"blocks = 1", "[engine]\nblock_size = 0", "[engine]\nbackend = \"vLLM\"", "[load]\nrouting = \"any\"", "version = 2", "workers = 0",
		"[engine]\nstate_cache = {}", "[engine.native_host_offload]\nscope = \"dp_rank_local\"", "[engine.timing_model]\ntype = \"fixed\"",
		"[engine]\naic_nextn = 6", "[engine.sglang]\nx = 1",
	} {
		if schema.Validate(decoded(t, text)) == nil {
			t.Errorf("accepted: %s", text)
		}
		if _, err := profiles.Parse("x", []byte(text)); err == nil {
			t.Errorf("the reader accepts: %s", text)
		}
	}
	for _, text := range []string{"[engine]\nmax_num_seqs = \"unlimited\"", "[engine]\naic_mtp_seed = \"18446744073709551615\"", "workers = 3"} {
		if err := schema.Validate(decoded(t, text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if _, err := profiles.Parse("x", []byte(text)); err != nil {
			t.Error(err)
		}
	}
}

func decoded(t *testing.T, text string) any {
	t.Helper()
	var tree map[string]any
	if _, err := toml.Decode(text, &tree); err != nil {
		t.Fatal(err)
	}
	return plain(t, tree)
}
