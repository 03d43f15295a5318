package modelcard

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zeebo/blake3"

	"mockbench/engine"
)

// File is one file of a model as a card names it.
type File struct {
	Path     string `json:"path"` // local path or URL
	Checksum string `json:"checksum"`
	Size     int64  `json:"size"`
}

// Formats of files that are looked into.
const (
	tokenizerJSON = "hf_tokenizer_json"
	templateJSON  = "hf_chat_template_json"
)

// namedFile is a file under the name of its format.
type namedFile struct {
	format string
	custom *bool // chat templates say whether they were given by the user
	file   File
}

// MarshalJSON writes {format: file}.
func (n namedFile) MarshalJSON() ([]byte, error) {
	var value any = n.file
	if n.custom != nil {
		value = struct {
			Custom bool `json:"is_custom"`
			File   File `json:"file"`
		}{*n.custom, n.file}
	}
	return json.Marshal(map[string]any{n.format: value})
}

// Checksum returns the checksum of r as cards write it, and the number of bytes.
func Checksum(r io.Reader) (sum string, size int64, err error) {
	h := blake3.New()
	size, err = io.Copy(h, r)
	return "blake3:" + hex.EncodeToString(h.Sum(nil)), size, err
}

// addFiles finds the files of the model and reads the context length out of them.
func (c *Card) addFiles(o Options) error {
	find := func(format string, names ...string) (*namedFile, error) {
		for _, name := range names {
			file, err := o.describeFile(name)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, modelError(o.Model.Dir, name+" cannot be read: "+reason(err))
			}
			return &namedFile{format: format, file: file}, nil
		}
		return nil, nil
	}
	tokenizer, err := tokenizerFile(o.Model.Dir)
	if err != nil {
		return err
	}
	for _, f := range []struct {
		into   **namedFile
		format string
		names  []string
	}{
		{&c.ModelInfo, "hf_config_json", []string{"config.json"}},
		{&c.Tokenizer, tokenizer.format, []string{tokenizer.name}},
		{&c.Formatter, "hf_tokenizer_config_json", []string{"tokenizer_config.json"}},
		{&c.Generation, "hf_generation_config_json", []string{"generation_config.json"}},
	} {
		if *f.into, err = find(f.format, f.names...); err != nil {
			return err
		}
	}
	if c.ModelInfo == nil {
		return modelError(o.Model.Dir, "config.json is missing, without which no frontend lists the model")
	}
	for _, t := range [][2]string{{"chat_template.jinja", "hf_chat_template"}, {"chat_template.json", templateJSON}} {
		if c.Template, err = find(t[1], t[0]); err != nil {
			return err
		}
		if c.Template != nil {
			c.Template.custom = new(bool)
			break
		}
	}
	if o.SelfHost != "" {
		if err := c.addExtraFiles(o); err != nil {
			return err
		}
	}
	return c.readConfig(o)
}

// readConfig takes from the files' contents what the card says, and checks them.
func (c *Card) readConfig(o Options) error {
	config, err := readDocument(o.Model.Dir, "config.json", true)
	if err != nil {
		return err
	}
	formatter, err := readDocument(o.Model.Dir, "tokenizer_config.json", false)
	if o.Engine.Role == engine.PrefillRole {
		err = nil // frontends ask prefill workers for no chats
	}
	if err == nil {
		c.Architected, err = contextLength(o.Model.Dir, config, formatter)
	}
	if err == nil && o.Engine.Role != engine.PrefillRole {
		err = c.checkServable(o.Model.Dir, config, formatter)
	}
	return err
}

// describeFile hashes one file of the model and says where a frontend gets it.
func (o *Options) describeFile(name string) (File, error) {
	f, err := os.Open(filepath.Join(o.Model.Dir, name))
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	sum, size, err := Checksum(f)
	if err != nil {
		return File{}, err
	}
	path := filepath.Join(o.Model.Dir, name)
	switch {
	case o.SelfHost != "":
		path = o.SelfHost + name
	case o.Model.Hub:
		path = "hf://" + o.Model.Source + "/" + name
	}
	return File{Path: path, Checksum: sum, Size: size}, nil
}

// tokenizerFile finds the one tokenizer of a directory.
func tokenizerFile(dir string) (found struct{ format, name string }, err error) {
	if exists(dir, "tokenizer.json") {
		found.format, found.name = tokenizerJSON, "tokenizer.json"
		return found, nil
	}
	found.format = "tik_token_model"
	if exists(dir, "tiktoken.model") {
		found.name = "tiktoken.model"
		return found, nil
	}
	list, err := filepath.Glob(filepath.Join(dir, "*.tiktoken"))
	if err != nil || len(list) == 0 {
		return found, modelError(dir, "tokenizer.json is missing, without which no frontend lists the model")
	}
	if len(list) > 1 {
		return found, modelError(dir, fmt.Sprintf("has %d *.tiktoken files; exactly one may be there", len(list)))
	}
	found.name = filepath.Base(list[0])
	return found, nil
}

func exists(dir, name string) bool {
	info, err := os.Stat(filepath.Join(dir, name))
	return err == nil && info.Mode().IsRegular()
}

// weights are the endings of files that frontends do not need.
var weights = []string{".safetensors", ".bin", ".gguf", ".onnx", ".tflite", ".h5", ".pt", ".pth", ".msgpack"}

// addExtraFiles lists every other file of the directory that a frontend might want.
func (c *Card) addExtraFiles(o Options) error {
	entries, err := os.ReadDir(o.Model.Dir)
	if err != nil {
		return modelError(o.Model.Dir, "cannot be read: "+reason(err))
	}
	known := map[string]bool{}
	for _, f := range []*namedFile{c.ModelInfo, c.Tokenizer, c.Formatter, c.Template, c.Generation} {
		if f != nil {
			known[filepath.Base(f.file.Path)] = true
		}
	}
	for _, e := range entries {
		name := e.Name()
		if known[name] || !extra(name) || !exists(o.Model.Dir, name) {
			continue
		}
		file, err := o.describeFile(name)
		if err != nil {
			return modelError(o.Model.Dir, name+" cannot be read: "+reason(err))
		}
		c.ExtraFiles = append(c.ExtraFiles, file)
	}
	return nil
}

func extra(name string) bool {
	return !strings.HasPrefix(name, ".") && name != "README.md" && !slices.Contains(weights, filepath.Ext(name))
}

func modelError(dir, what string) error {
	return &engine.SettingError{Setting: "model_path", Kind: engine.KindRange, Given: dir,
		Allowed: "must be a model directory that a frontend can use: " + what}
}

// reason strips the path from an error about a file.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}
