package modelcard

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mockbench/engine"
)

// served are the files of a small model that a frontend lists.
var served = map[string]string{
	"config.json":           `{"architectures":["A"],"model_type":"llama","max_position_embeddings":4096,"eos_token_id":1}`,
	"tokenizer.json":        `{"model":{}}`,
	"tokenizer_config.json": `{"chat_template":"{{ messages }}","model_max_length":77}`,
}

// modelWith writes the files of a served model with changes; an empty text leaves the file out.
func modelWith(t *testing.T, changes map[string]string) Model {
	t.Helper()
	dir := t.TempDir()
	for _, files := range []map[string]string{served, changes} {
		for name, text := range files {
			path := filepath.Join(dir, name)
			err := os.WriteFile(path, []byte(text), 0o600)
			if text == "" {
				err = os.Remove(path)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return Model{Dir: dir, Source: dir}
}

func cardOf(m Model, role engine.Role) (*Card, error) {
	config := engine.DefaultConfig(engine.VLLM)
	config.Role = role
	return New(Options{Model: m, Engine: config, Ranks: 1})
}

func TestRefusedModels(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		says  string
	}{
		"no config":         {map[string]string{"config.json": ""}, "config.json"},
		"params only":       {map[string]string{"config.json": "", "params.json": "{}"}, "config.json"},
		"config not JSON":   {map[string]string{"config.json": "{"}, "not JSON"},
		"config a list":     {map[string]string{"config.json": "[]"}, "not a JSON object"},
		"no architectures":  {map[string]string{"config.json": `{"model_type":"llama"}`}, "architectures"},
		"no model type":     {map[string]string{"config.json": `{"architectures":[]}`}, "model_type"},
		"odd length":        {map[string]string{"config.json": `{"max_position_embeddings":"many"}`}, "max_position_embeddings"},
		"odd inner length":  {map[string]string{"config.json": `{"text_config":{"max_position_embeddings":1.5}}`}, "text_config.max_position"},
		"no tokenizer":      {map[string]string{"tokenizer.json": ""}, "tokenizer.json"},
		"empty tokenizer":   {map[string]string{"tokenizer.json": "{}"}, "tokenizer.json has no model"},
		"damaged tokenizer": {map[string]string{"tokenizer.json": `{"model":`}, "cut off"},
		"two tokenizers":    {map[string]string{"tokenizer.json": "", "a.tiktoken": "x", "b.tiktoken": "x"}, "2 *.tiktoken"},
		"no formatter":      {map[string]string{"tokenizer_config.json": ""}, "tokenizer_config.json is missing"},
		"damaged formatter": {map[string]string{"tokenizer_config.json": `{"a":1,}`}, "tokenizer_config.json is not JSON"},
		"no template":       {map[string]string{"tokenizer_config.json": "{}"}, "no chat template"},
		"damaged template":  {map[string]string{"chat_template.json": "x"}, "chat_template.json is not JSON"},
		"empty template":    {map[string]string{"chat_template.json": "{}"}, "chat_template.json has no"},
		"no end token":      {map[string]string{"config.json": `{"architectures":[],"model_type":"llama"}`}, "no end token"},
	} {
		t.Run(name, func(t *testing.T) {
			m := modelWith(t, c.files)
			_, err := cardOf(m, engine.Aggregated)
			var wrong *engine.SettingError
			if !errors.As(err, &wrong) || wrong.Setting != "model_path" || wrong.Given != m.Dir || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want a refusal of the model path with %q", err, c.says)
			}
		})
	}
}

func TestAcceptedModels(t *testing.T) {
	const kind = `"architectures":["A"],"model_type":"llama","eos_token_id":1`
	for name, c := range map[string]struct {
		files  map[string]string
		length uint32 // 0: none
	}{
		"as it is":            {nil, 4096},
		"from the tokenizer":  {map[string]string{"config.json": "{" + kind + "}"}, 77},
		"from the text model": {map[string]string{"config.json": "{" + kind + `,"text_config":{"max_position_embeddings":99}}`}, 99},
		"zero":                {map[string]string{"config.json": "{" + kind + `,"max_position_embeddings":0}`}, 0},
		"without bounds": {map[string]string{"config.json": "{" + kind + "}",
			"tokenizer_config.json": `{"chat_template":"x","model_max_length":1000000000000000019884624838656}`}, 0},
		"JSON5":         {map[string]string{"config.json": "\uFEFF// by hand\n{" + kind + ", max_position_embeddings: 0x100, 'x': [NaN, -Infinity,], /* end */}"}, 256},
		"template file": {map[string]string{"tokenizer_config.json": "{}", "chat_template.jinja": "{{ messages }}"}, 4096},
		"end in the generation config": {map[string]string{"config.json": `{"architectures":[],"model_type":"llama"}`,
			"generation_config.json": `{"eos_token_id":[1,2]}`, "tokenizer_config.json": `{"chat_template":"x"}`}, 0},
		"end in the specials": {map[string]string{"config.json": `{"architectures":[],"model_type":"llama"}`,
			"special_tokens_map.json": `{"eos_token":"e"}`, "generation_config.json": "damaged"}, 77},
		"tiktoken": {map[string]string{"tokenizer.json": "", "only.tiktoken": "x"}, 4096},
	} {
		t.Run(name, func(t *testing.T) {
			card, err := cardOf(modelWith(t, c.files), engine.Aggregated)
			if err != nil {
				t.Fatal(err)
			}
			var got uint32
			if card.Architected != nil {
				got = *card.Architected
			}
			if got != c.length {
				t.Errorf("context length %d, want %d", got, c.length)
			}
		})
	}
	bare := modelWith(t, map[string]string{"tokenizer_config.json": ""})
	if _, err := cardOf(bare, engine.PrefillRole); err != nil {
		t.Errorf("a prefill worker needs no chat template, got %v", err)
	}
}

func TestModelsThatAreNotThere(t *testing.T) {
	for _, missing := range []string{"/no/such/dir", "org/name", "word", "a/b/c", ""} {
		_, err := Resolve(missing, func(string) string { return "" })
		var wrong *engine.SettingError
		if !errors.As(err, &wrong) || wrong.Setting != "model_path" || wrong.Given != missing {
			t.Errorf("%s: got %v", missing, err)
		}
		if hub := missing == "org/name" || missing == "word"; hub != strings.Contains(err.Error(), "hf download "+missing) {
			t.Errorf("%s: the error does not say how to get it, or does for no hub id: %v", missing, err)
		}
	}
}

func TestHubCacheFolders(t *testing.T) {
	for want, env := range map[string]map[string]string{
		"/a":                        {"HF_HUB_CACHE": "/a", "HF_HOME": "/b", "HOME": "/c"},
		"/b/hub":                    {"HF_HOME": "/b", "HOME": "/c"},
		"/c/.cache/huggingface/hub": {"HOME": "/c"},
	} {
		if got := hubCache(func(k string) string { return env[k] }); got != want {
			t.Errorf("%v: got %s, want %s", env, got, want)
		}
	}
}

func TestJSON5(t *testing.T) {
	number := func(s string) json.Number { return json.Number(s) }
	for text, want := range map[string]any{
		`{}`:                              map[string]any{},
		`[1,2,]`:                          []any{number("1"), number("2")},
		`{a:+1,'b':-.5,"c":0xFf,d:2.,}`:   map[string]any{"a": number("1"), "b": number("-0.5"), "c": number("255"), "d": number("2")},
		`[NaN,+Infinity,null,true,false]`: []any{nil, nil, nil, true, false},
		`"a\n\x41\u00e9\ud83d\ude00\'\` + "\n" + `b"`: "a\nAé😀'b",
		"// only\n1e3 /* more */":                     number("1e3"),
	} {
		got, err := parseJSON5(text)
		if d := cmp.Diff(want, got); err != nil || d != "" {
			t.Errorf("%s: %v\n%s", text, err, d)
		}
	}
	for _, text := range []string{"", "{", "[1 2]", "{a}", "{:1}", `"open`, "nan", "1 2", "--1", "+", "0x", `"\u12`, `"\xzz"`, "{a:1 b:2}",
		strings.Repeat("[", 2000)} {
		if v, err := parseJSON5(text); err == nil {
			t.Errorf("%.20s: got %v, want an error", text, v)
		}
	}
}

func FuzzJSON5(f *testing.F) {
	f.Add(`{"a":[1,2.5,"x\u0041"],b:'c',}`)
	f.Add("[NaN,]")
	f.Fuzz(func(t *testing.T, text string) {
		if json.Valid([]byte(text)) {
			if _, err := parseJSON5(text); err != nil && !strings.Contains(err.Error(), "deeply") {
				t.Errorf("%q is JSON but not JSON5: %v", text, err)
			}
		}
		_, _ = parseJSON5(text)
	})
}
