package interop

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// answer is what a client got.
type answer struct {
	status  int
	text    string
	finish  string
	usage   usage
	chunks  int           // with content
	first   time.Duration // to the first content
	total   time.Duration
	body    string // of an answer that is not 200
	errored bool   // the stream carried an error event

	worker  uint64  // that served, in answers that are asked for it
	hitRate float64 // the router's forecast: share of the prompt that the worker holds
}

type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Details    struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// reply is an answer or a chunk, in chat or in completions form.
type reply struct {
	Choices []struct {
		Text    string
		Delta   struct{ Content string }
		Message struct{ Content string }
		Finish  string `json:"finish_reason"`
	}
	Usage *usage
	Nvext *struct {
		Worker struct {
			ID uint64 `json:"decode_worker_id"`
		} `json:"worker_id"`
		Timing struct {
			HitRate float64 `json:"kv_hit_rate"`
		}
	}
}

func (a *answer) take(r reply) (content bool) {
	for _, c := range r.Choices {
		text := c.Text + c.Delta.Content + c.Message.Content
		a.text += text
		content = content || text != ""
		if c.Finish != "" {
			a.finish = c.Finish
		}
	}
	if r.Usage != nil {
		a.usage = *r.Usage
	}
	if r.Nvext != nil {
		a.worker, a.hitRate = r.Nvext.Worker.ID, r.Nvext.Timing.HitRate
	}
	return content
}

// ask sends one request; body is completed with the model's name. onContent, if given, is called at each chunk.
func (c *cluster) ask(ctx context.Context, path string, body map[string]any, onContent func()) (answer, error) {
	body["model"] = modelName
	if body["stream"] == true {
		body["stream_options"] = map[string]any{"include_usage": true}
	}
	data, err := json.Marshal(body)
	if err != nil {
		return answer{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+path, bytes.NewReader(data))
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	begin := time.Now()
	r, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer r.Body.Close()
	a := answer{status: r.StatusCode}
	if r.StatusCode != http.StatusOK || body["stream"] != true {
		var all bytes.Buffer
		if _, err := all.ReadFrom(r.Body); err != nil {
			return a, err
		}
		a.body, a.total = all.String(), time.Since(begin)
		var one reply
		if r.StatusCode == http.StatusOK {
			err = json.Unmarshal(all.Bytes(), &one)
			a.take(one)
		}
		return a, err
	}
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(nil, 1<<20)
	ended := false
	for lines.Scan() {
		event, isData := strings.CutPrefix(lines.Text(), "data: ")
		switch {
		case strings.HasPrefix(event, `{"error"`), strings.HasPrefix(event, `{"message"`):
			a.errored, a.body = true, event
		case event == "[DONE]":
			ended = true
		case isData:
			var one reply
			if err := json.Unmarshal([]byte(event), &one); err != nil {
				return a, fmt.Errorf("%w in %s", err, event)
			}
			if a.take(one) {
				if a.chunks++; a.chunks == 1 {
					a.first = time.Since(begin)
				}
				if onContent != nil {
					onContent()
				}
			}
		}
	}
	a.total = time.Since(begin)
	if err := lines.Err(); err != nil {
		return a, err
	}
	if !ended {
		return a, fmt.Errorf("the stream ended without [DONE] after %d chunks", a.chunks)
	}
	return a, nil
}

// chat is a streaming chat completion of exactly n tokens.
func chat(prompt string, n int) map[string]any {
	return map[string]any{"stream": true, "max_tokens": n, "ignore_eos": true,
		"messages": []map[string]string{{"role": "user", "content": prompt}}}
}

// mustChat asks and fails the test if the answer is not complete.
func (c *cluster) mustChat(prompt string, n int) answer {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	a, err := c.ask(ctx, "/v1/chat/completions", chat(prompt, n), nil)
	if err != nil || a.status != 200 || a.errored || a.usage.Completion != n {
		c.t.Fatalf("got %+v, %v, want %d tokens", a, err, n)
	}
	return a
}
