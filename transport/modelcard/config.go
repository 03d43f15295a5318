package modelcard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// document is a JSON object of a model's directory; nil if the file is not there.
type document map[string]any

// readDocument reads a file that must hold a JSON object, in JSON5 or in plain JSON as frontends read it.
func readDocument(dir, name string, extended bool) (document, error) {
	data, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, modelError(dir, name+" cannot be read: "+reason(err))
	}
	var v any
	if extended {
		v, err = parseJSON5(string(data))
	} else {
		d := json.NewDecoder(strings.NewReader(string(data)))
		d.UseNumber()
		err = d.Decode(&v)
	}
	if err != nil {
		return nil, modelError(dir, name+" is not JSON: "+err.Error())
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, modelError(dir, name+" is not a JSON object")
	}
	return object, nil
}

// contextLength reads the context length that the model was built for: max_position_embeddings of config.json or of
// its text_config, else model_max_length of tokenizer_config.json. The first that is there counts; zero means that
// there is none. Only in config.json must it be a number of tokens.
func contextLength(dir string, config, formatter document) (*uint32, error) {
	inner, _ := config["text_config"].(map[string]any)
	for _, place := range []struct {
		name string
		in   document
	}{
		{"max_position_embeddings", config},
		{"text_config.max_position_embeddings", inner},
	} {
		v := place.in["max_position_embeddings"]
		if v == nil {
			continue
		}
		n, ok := tokens(v)
		if !ok {
			return nil, modelError(dir, fmt.Sprintf("%s of config.json is %v, not a whole number of tokens", place.name, v))
		}
		return n, nil
	}
	n, _ := tokens(formatter["model_max_length"])
	return n, nil
}

// tokens reads a number of tokens; nil is none.
func tokens(v any) (count *uint32, ok bool) {
	number, _ := v.(json.Number)
	n, err := number.Int64()
	if err != nil || n < 0 || n > math.MaxUint32 {
		return nil, false
	}
	if n == 0 {
		return nil, true
	}
	length := uint32(n)
	return &length, true
}

// checkServable refuses a model that frontends would try to load for ever and never list. dir has the files of c.
func (c *Card) checkServable(dir string, config, formatter document) error {
	if _, ok := config["architectures"].([]any); !ok {
		return modelError(dir, "config.json has no architectures, without which no frontend lists the model")
	}
	if _, ok := config["model_type"].(string); !ok {
		return modelError(dir, "config.json has no model_type, without which no frontend lists the model")
	}
	if c.Tokenizer.format == tokenizerJSON {
		if err := checkTokenizer(dir); err != nil {
			return err
		}
	}
	if formatter == nil {
		return modelError(dir, "tokenizer_config.json is missing, without which no frontend lists the model")
	}
	if err := c.checkTemplate(dir, formatter); err != nil {
		return err
	}
	return checkEnd(dir, config, formatter)
}

// checkTokenizer looks whether tokenizer.json is whole. It does not parse it: that takes longer than all the rest of a
// start, for the tokenizers of large models.
func checkTokenizer(dir string) error {
	data, err := os.ReadFile(filepath.Join(dir, "tokenizer.json"))
	if err != nil {
		return modelError(dir, "tokenizer.json cannot be read: "+reason(err))
	}
	data = bytes.TrimSpace(data)
	switch {
	case !bytes.HasPrefix(data, []byte("{")) || !bytes.HasSuffix(data, []byte("}")):
		return modelError(dir, "tokenizer.json is not a JSON object, or is cut off")
	case !bytes.Contains(data, []byte(`"model"`)):
		return modelError(dir, "tokenizer.json has no model")
	}
	return nil
}

// checkTemplate looks for the chat template.
func (c *Card) checkTemplate(dir string, formatter document) error {
	switch {
	case c.Template == nil && formatter["chat_template"] == nil:
		return modelError(dir, "there is no chat template: neither chat_template in tokenizer_config.json nor chat_template.jinja nor chat_template.json")
	case c.Template != nil && c.Template.format == templateJSON:
		template, err := readDocument(dir, "chat_template.json", false)
		if err != nil {
			return err
		}
		if _, ok := template["chat_template"].(string); !ok {
			return modelError(dir, "chat_template.json has no chat_template")
		}
	}
	return nil
}

// checkEnd looks for the token that ends answers.
func checkEnd(dir string, config, formatter document) error {
	generation, _ := readDocument(dir, "generation_config.json", false) // frontends ignore a damaged one
	specials, _ := readDocument(dir, "special_tokens_map.json", false)
	if config["eos_token_id"] == nil && generation["eos_token_id"] == nil && formatter["eos_token"] == nil && specials["eos_token"] == nil {
		return modelError(dir, "no end token is named: neither eos_token_id in config.json or generation_config.json "+
			"nor eos_token in tokenizer_config.json or special_tokens_map.json")
	}
	return nil
}
