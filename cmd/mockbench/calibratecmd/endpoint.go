package calibratecmd

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// endpoint is an OpenAI-compatible server.
type endpoint struct {
	url    string // without a path
	model  string
	key    string
	client *http.Client
}

// answer is when the parts of a streamed answer came, counted from when the request had been sent.
type answer struct {
	sent           time.Time
	chunks         []time.Duration // with text
	prompt, output int             // tokens, as the server counts them
}

// perChunk returns the tokens of a chunk.
func (a *answer) perChunk() float64 { return float64(a.output) / float64(len(a.chunks)) }

type chatRequest struct {
	Model         string        `json:"model"`
	Messages      []chatMessage `json:"messages"`
	MaxTokens     int           `json:"max_tokens"`
	IgnoreEOS     bool          `json:"ignore_eos"` // known to vLLM, SGLang and Dynamo
	Temperature   float64       `json:"temperature"`
	Stream        bool          `json:"stream"`
	StreamOptions streamOptions `json:"stream_options"`
}

type chatMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type chatChunk struct {
	Choices []struct {
		Delta struct {
			Content   string `json:"content"`
			Reasoning string `json:"reasoning_content"`
		} `json:"delta"`
	} `json:"choices"`
	Usage *struct {
		Prompt int `json:"prompt_tokens"`
		Output int `json:"completion_tokens"`
	} `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// ask sends one request and reads its whole answer.
func (e *endpoint) ask(ctx context.Context, prompt string, tokens int) (*answer, error) {
	body, err := json.Marshal(chatRequest{Model: e.model, Messages: []chatMessage{{"user", prompt}}, MaxTokens: tokens,
		IgnoreEOS: true, Stream: true, StreamOptions: streamOptions{IncludeUsage: true}})
	if err != nil {
		return nil, err
	}
	start, wrote := time.Now(), atomic.Int64{} // nanoseconds, without the time to connect
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) {
		wrote.Store(int64(time.Since(start)))
	}})
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	if e.key != "" {
		r.Header.Set("Authorization", "Bearer "+e.key)
	}
	response, err := e.client.Do(r)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err // without method and address
		}
		return nil, fmt.Errorf("--url %s: %w", e.url, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 300))
		return nil, fmt.Errorf("--url %s: status %s: %s", e.url, response.Status, oneLine(text))
	}
	a := &answer{sent: start.Add(time.Duration(wrote.Load()))}
	if err := a.read(response.Body); err != nil {
		return nil, fmt.Errorf("--url %s: %w", e.url, err)
	}
	return a, nil
}

func oneLine(text []byte) string { return strings.Join(strings.Fields(string(text)), " ") }

const mostLineBytes = 1 << 20

// read reads server-sent events up to the end of the answer.
func (a *answer) read(r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, mostLineBytes)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data:"))
		if !ok {
			continue
		}
		if data = bytes.TrimSpace(data); string(data) == "[DONE]" {
			break
		}
		var c chatChunk
		if err := json.Unmarshal(data, &c); err != nil {
			return fmt.Errorf("the answer is not a stream of chat completion chunks: %w", err)
		}
		if len(c.Error) > 0 && string(c.Error) != "null" {
			return fmt.Errorf("the answer holds an error: %s", oneLine(c.Error))
		}
		if len(c.Choices) > 0 && c.Choices[0].Delta.Content+c.Choices[0].Delta.Reasoning != "" {
			a.chunks = append(a.chunks, time.Since(a.sent))
		}
		if c.Usage != nil {
			a.prompt, a.output = c.Usage.Prompt, c.Usage.Output
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("the answer has a line of more than %d MiB", mostLineBytes>>20)
	case err != nil:
		return fmt.Errorf("the answer broke off: %w", err)
	case len(a.chunks) == 0:
		return errors.New("the answer has no text")
	case a.prompt == 0 || a.output == 0:
		return errors.New("the answer has no usage (stream_options.include_usage), which tells its tokens")
	}
	return nil
}
