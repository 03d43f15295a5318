package modelcard

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/zeebo/blake3"
)

// BuiltinName is what the built-in model is called.
const BuiltinName = "mockbench-demo"

const (
	vocabulary = 2048 // as few as possible: frontends read the whole tokenizer before they list the model
	firstWord  = 1000 // live workers answer with ids from here on, so these must be words
	wordCount  = 1000
)

//go:embed words.txt
var wordList string

var specials = []string{"<|begin|>", "<|end|>", "<|user|>", "<|assistant|>", "<|system|>", "<think>", "</think>"}

const chatTemplate = "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}<|end|>{% endfor %}" +
	"{% if add_generation_prompt %}<|assistant|>{% endif %}"

// Builtin returns the model that comes with the program: a byte-level tokenizer whose ids 1000 to 1999 are words. Its
// directory is made in cacheDir, if that can be written, else in the folder for temporary files; a complete one that
// is there already is used again.
func Builtin(cacheDir string) (Model, error) {
	files, err := builtinFiles()
	if err != nil {
		return Model{}, err
	}
	name := "model-" + digest(files)
	var failed error
	for _, parent := range []string{filepath.Join(cacheDir, "mockbench"), filepath.Join(os.TempDir(), fmt.Sprintf("mockbench-%d", os.Getuid()))} {
		dir := filepath.Join(parent, name)
		if complete(dir, files) {
			return Model{Dir: dir, Source: dir}, nil
		}
		if failed = unpack(parent, dir, files); failed == nil {
			return Model{Dir: dir, Source: dir}, nil
		}
	}
	return Model{}, fmt.Errorf("built-in model: it can be written neither to the cache nor to the temporary folder: %w", failed)
}

func digest(files map[string][]byte) string {
	h := blake3.New()
	for _, name := range []string{"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"} {
		h.Write(files[name])
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:6])
}

func complete(dir string, files map[string][]byte) bool {
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !bytes.Equal(got, want) {
			return false
		}
	}
	return true
}

// unpack writes the files into a folder of their own and gives it its name when it is complete.
func unpack(parent, dir string, files map[string][]byte) error {
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	scrap, err := os.MkdirTemp(parent, ".model-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scrap)
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(scrap, name), data, 0o644); err != nil {
			return err
		}
	}
	if err := os.Chmod(scrap, 0o755); err != nil {
		return err
	}
	if err := os.Rename(scrap, dir); err == nil || complete(dir, files) {
		return nil
	}
	if err := os.RemoveAll(dir); err != nil { // a damaged copy is in the way
		return err
	}
	return os.Rename(scrap, dir)
}

func builtinFiles() (map[string][]byte, error) {
	files := map[string][]byte{"tokenizer.json": tokenizer()}
	for name, value := range map[string]any{
		"config.json": map[string]any{
			"architectures": []string{"LlamaForCausalLM"}, "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
			"num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 14336,
			"vocab_size": vocabulary, "max_position_embeddings": 131072, "torch_dtype": "bfloat16", "bos_token_id": 0,
			"eos_token_id": 1, "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "hidden_act": "silu", "tie_word_embeddings": false,
		},
		"generation_config.json": map[string]any{"bos_token_id": 0, "eos_token_id": 1},
		"tokenizer_config.json": map[string]any{
			"bos_token": specials[0], "eos_token": specials[1], "tokenizer_class": "PreTrainedTokenizerFast",
			"model_max_length": 131072, "chat_template": chatTemplate,
		},
	} {
		data, err := json.MarshalIndent(value, "", "  ")
		if err != nil {
			return nil, err
		}
		files[name] = append(data, '\n')
	}
	return files, nil
}

// tokenizer writes tokenizer.json: special tokens, the 256 bytes, filler, words, filler.
func tokenizer() []byte {
	var b bytes.Buffer
	b.WriteString(`{"version":"1.0","truncation":null,"padding":null,"added_tokens":[`)
	for i, s := range specials {
		comma(&b, i)
		fmt.Fprintf(&b, `{"id":%d,"content":%s,"single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}`, i, quote(s))
	}
	b.WriteString(`],"normalizer":null,"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true},` +
		`"post_processor":null,"decoder":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true},` +
		`"model":{"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":null,"end_of_word_suffix":null,` +
		`"fuse_unk":false,"byte_fallback":false,"ignore_merges":false,"vocab":{`)
	words, letters := Words(), byteLetters()
	space := string(letters[' '])
	for id := range vocabulary {
		comma(&b, id)
		var token string
		switch {
		case id < len(specials):
			token = specials[id]
		case id < len(specials)+256:
			token = string(letters[bytesInOrder[id-len(specials)]])
		case id >= firstWord && id < firstWord+wordCount:
			token = space + words[id-firstWord]
		default:
			token = space + "w" + strconv.Itoa(id)
		}
		b.WriteString(quote(token))
		b.WriteByte(':')
		b.WriteString(strconv.Itoa(id))
	}
	b.WriteString(`},"merges":[]}}` + "\n")
	return b.Bytes()
}

func comma(b *bytes.Buffer, i int) {
	if i > 0 {
		b.WriteByte(',')
	}
}

var escapeQuotes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// quote writes a token, which has no control characters, as JSON.
func quote(s string) string {
	return `"` + escapeQuotes.Replace(s) + `"`
}

// Words returns the words of ids 1000 to 1999: the list, then its plurals.
func Words() []string {
	base := strings.Fields(wordList)
	seen := map[string]bool{}
	words := make([]string, 0, wordCount)
	add := func(w string) {
		if !seen[w] && len(words) < wordCount {
			seen[w] = true
			words = append(words, w)
		}
	}
	for _, w := range base {
		add(w)
	}
	for _, w := range base {
		add(plural(w))
	}
	return words
}

func plural(w string) string {
	last := w[len(w)-1]
	switch {
	case last == 'y' && !strings.ContainsRune("aeiou", rune(w[len(w)-2])):
		return w[:len(w)-1] + "ies"
	case last == 's' || last == 'x' || strings.HasSuffix(w, "ch") || strings.HasSuffix(w, "sh"):
		return w + "es"
	}
	return w + "s"
}

// bytesInOrder lists all bytes in the order of their ids: the printable ones of Latin-1, then the rest.
var bytesInOrder = func() (list [256]byte) {
	n := 0
	for _, want := range []bool{true, false} {
		for c := range 256 {
			if printable(byte(c)) == want {
				list[n] = byte(c)
				n++
			}
		}
	}
	return list
}()

func printable(c byte) bool { return c >= '!' && c <= '~' || c >= 0xA1 && c <= 0xAC || c >= 0xAE }

// byteLetters returns the characters that byte-level vocabularies write for the bytes: themselves where they are
// printable, else those from U+0100 on.
func byteLetters() (letters [256]rune) {
	next := rune(0x100)
	for c := range letters {
		letters[c] = rune(c)
		if !printable(byte(c)) {
			letters[c] = next
			next++
		}
	}
	return letters
}
