package etcd

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"
)

// probeTimeout is how long a server may take to show that it is there.
const probeTimeout = 200 * time.Millisecond

// Answers reports whether an etcd server answers at an HTTP endpoint within 200 ms.
func Answers(ctx context.Context, endpoint string) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(endpoint, "/")+"/version", nil)
	if err != nil {
		return false
	}
	transport := &http.Transport{DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	r, err := transport.RoundTrip(request)
	if err != nil {
		return false
	}
	defer r.Body.Close()
	var version struct {
		Server string `json:"etcdserver"`
	}
	err = json.NewDecoder(io.LimitReader(r.Body, 1<<12)).Decode(&version)
	return err == nil && version.Server != ""
}
