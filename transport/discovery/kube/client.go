package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

const (
	requestTimeout = 10 * time.Second // of one request; a caller's context may end it sooner
	mostAnswer     = 64 << 20         // bytes of an answer that are read
	tries          = 5
	firstPause     = 250 * time.Millisecond
)

// client speaks to one API server.
type client struct {
	base *url.URL
	http *http.Client
}

// newClient finds the API server: KUBECONFIG (or ~/.kube/config), else the service account of the pod.
func newClient(log *slog.Logger) (*client, error) {
	klog.SetSlogLogger(log) // it would write to stderr, over the screen
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.WarnIfAllMissing = false
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err):
		return nil, fmt.Errorf("kubernetes: no API server is known: KUBECONFIG names no cluster (tried %s), and there is no service account of a pod (KUBERNETES_SERVICE_HOST is not set)",
			strings.Join(rules.GetLoadingPrecedence(), ", "))
	case err != nil:
		return nil, fmt.Errorf("kubernetes: KUBECONFIG: %s", oneLine(err.Error()))
	}
	config.UserAgent = "mockbench"
	c := new(client)
	if c.base, _, err = rest.DefaultServerUrlFor(config); err != nil {
		return nil, fmt.Errorf("kubernetes: KUBECONFIG: server %q: %s", config.Host, oneLine(err.Error()))
	}
	if c.http, err = rest.HTTPClientFor(config); err != nil {
		return nil, fmt.Errorf("kubernetes: KUBECONFIG: %s", oneLine(err.Error()))
	}
	return c, nil
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// statusError is an answer other than 2xx.
type statusError struct {
	code int
	text string
}

func (e *statusError) Error() string { return fmt.Sprintf("%d %s", e.code, e.text) }

// isStatus reports whether the server answered with a code.
func isStatus(err error, code int) bool {
	var s *statusError
	return errors.As(err, &s) && s.code == code
}

// transient reports whether trying again may help.
func transient(err error) bool {
	var s *statusError
	return !errors.As(err, &s) || s.code == http.StatusTooManyRequests || s.code >= 500
}

// persist repeats a request while its failure is transient.
func persist(ctx context.Context, request func() error) error {
	pause := firstPause
	for n := 1; ; n++ {
		err := request()
		if err == nil || n == tries || !transient(err) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
		pause *= 2
	}
}

// do sends one request and decodes the answer into out, unless that is nil. It returns the status code of a success.
func (c *client) do(ctx context.Context, method, path string, query url.Values, contentType string, body []byte, out any) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	u := c.base.JoinPath(path)
	u.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Accept", "application/json")
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	r, err := c.http.Do(request)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = errors.New("no answer in time")
		}
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err
		}
		return 0, err
	}
	defer r.Body.Close()
	data, err := io.ReadAll(io.LimitReader(r.Body, mostAnswer))
	if err != nil {
		return 0, err
	}
	if r.StatusCode/100 != 2 {
		return 0, failure(r.StatusCode, data)
	}
	if out != nil {
		err = json.Unmarshal(data, out)
	}
	return r.StatusCode, err
}

// failure reads the text of an error answer.
func failure(code int, data []byte) error {
	var s struct{ Message string }
	if json.Unmarshal(data, &s) != nil || s.Message == "" {
		s.Message = string(data[:min(len(data), 200)])
	}
	return &statusError{code, oneLine(s.Message)}
}
