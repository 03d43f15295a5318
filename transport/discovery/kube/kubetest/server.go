// Package kubetest is a small API server for tests of discovery through Kubernetes: it keeps custom resources and
// endpoint slices, and lets clients list, watch, apply and delete them.
package kubetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Paths of the two kinds of objects below a group's version and namespace.
const (
	Resources = "dynamoworkermetadatas"
	Slices    = "endpointslices"
)

const slicesLabel = "nvidia.com/dynamo-discovery-enabled"

// Request is a request that was made.
type Request struct {
	Method, Path, Query, ContentType string
	Body                             []byte
}

// Server is an API server. Start makes one.
type Server struct {
	http *httptest.Server

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at every event
	version  int
	objects  map[string]object // by path
	events   []event
	requests []Request
	failures int
	failWith int
	ended    chan struct{}
	closing  sync.Once
}

type object map[string]any

type event struct {
	version int
	path    string // of the collection
	labels  string
	line    []byte
}

// Start returns a running server.
func Start() *Server {
	s := &Server{objects: map[string]object{}, changed: make(chan struct{}), ended: make(chan struct{})}
	s.http = httptest.NewServer(s)
	return s
}

// Close ends the server and all watches.
func (s *Server) Close() {
	s.closing.Do(func() { close(s.ended) })
	s.http.CloseClientConnections()
	s.http.Close()
}

// URL is the address of the server.
func (s *Server) URL() string { return s.http.URL }

// Kubeconfig writes a file that names the server as the only cluster, and returns its path.
func (s *Server) Kubeconfig(dir string) (string, error) {
	path := filepath.Join(dir, "kubeconfig")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: test
clusters: [{name: test, cluster: {server: %q}}]
users: [{name: test, user: {}}]
contexts: [{name: test, context: {cluster: test, user: test}}]
`, s.URL())
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// Fail answers the next n requests with a status code.
func (s *Server) Fail(n, code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures, s.failWith = n, code
}

// Requests returns what was asked so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Resource returns the custom resource of a name, or nil.
func (s *Server) Resource(namespace, name string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, there := s.objects[resources(namespace)+"/"+name]
	if !there {
		return nil
	}
	return encode(o)
}

// Delete deletes a custom resource.
func (s *Server) Delete(namespace, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(resources(namespace), name)
}

// Ready says in an endpoint slice whether a pod is ready.
func (s *Server) Ready(namespace, pod, uid string, ready bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put("/apis/discovery.k8s.io/v1/namespaces/"+namespace+"/"+Slices, object{
		"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
		"metadata": map[string]any{"name": pod, "labels": map[string]any{slicesLabel: "true"}},
		"endpoints": []any{map[string]any{"addresses": []any{"127.0.0.1"}, "conditions": map[string]any{"ready": ready},
			"targetRef": map[string]any{"kind": "Pod", "name": pod, "namespace": namespace, "uid": uid}}},
		"ports": []any{},
	})
}

func resources(namespace string) string {
	return "/apis/nvidia.com/v1alpha1/namespaces/" + namespace + "/" + Resources
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// put stores an object as the server does and tells watchers. It reports whether the object is new.
func (s *Server) put(collection string, o object) (stored object, created bool) {
	meta := o["metadata"].(map[string]any)
	path := collection + "/" + meta["name"].(string)
	old, exists := s.objects[path]
	if exists && same(old, o) {
		return old, false
	}
	s.version++
	kind := "MODIFIED"
	meta["uid"] = fmt.Sprintf("object-%d", s.version)
	if exists {
		meta["uid"] = old["metadata"].(map[string]any)["uid"]
	} else {
		kind = "ADDED"
	}
	meta["namespace"] = strings.Split(collection, "/")[5]
	meta["resourceVersion"] = fmt.Sprint(s.version)
	meta["creationTimestamp"] = "2026-01-01T00:00:00Z"
	s.objects[path] = o
	s.tell(kind, collection, o)
	return o, !exists
}

// same compares what clients write.
func same(a, b object) bool {
	return bytes.Equal(encode([]any{a["spec"], a["endpoints"]}), encode([]any{b["spec"], b["endpoints"]}))
}

func (s *Server) remove(collection, name string) bool {
	o, there := s.objects[collection+"/"+name]
	if !there {
		return false
	}
	delete(s.objects, collection+"/"+name)
	s.version++
	o["metadata"].(map[string]any)["resourceVersion"] = fmt.Sprint(s.version)
	s.tell("DELETED", collection, o)
	return true
}

func (s *Server) tell(kind, collection string, o object) {
	s.events = append(s.events, event{s.version, collection, labels(o), append(encode(map[string]any{"type": kind, "object": o}), '\n')})
	close(s.changed)
	s.changed = make(chan struct{})
}

// labels returns the labels of an object as a selector writes them.
func labels(o object) string {
	set, _ := o["metadata"].(map[string]any)["labels"].(map[string]any)
	var list []string
	for k, v := range set {
		list = append(list, fmt.Sprintf("%s=%v", k, v))
	}
	return strings.Join(list, ",")
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.requests = append(s.requests, Request{r.Method, r.URL.Path, r.URL.RawQuery, r.Header.Get("Content-Type"), body})
	fail := s.failures > 0
	if fail {
		s.failures--
	}
	s.mu.Unlock()
	if fail {
		refuse(w, s.failWith, "told to fail")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	collection, name := split(r.URL.Path)
	switch {
	case collection == "":
		refuse(w, http.StatusNotFound, "the server could not find the requested resource")
	case name == "" && r.Method == http.MethodGet && r.URL.Query().Get("watch") != "":
		s.watch(w, r, collection)
	case name == "" && r.Method == http.MethodGet:
		s.list(w, r, collection)
	case name != "":
		s.one(w, r, collection, name, body)
	default:
		refuse(w, http.StatusMethodNotAllowed, "the server does not allow this method on the requested resource")
	}
}

// split cuts the path of an object or a collection; collection is empty for paths of neither.
func split(path string) (collection, name string) {
	parts := strings.Split(path, "/")
	if len(parts) < 7 || parts[6] != Resources && parts[6] != Slices {
		return "", ""
	}
	collection = strings.Join(parts[:7], "/")
	return collection, strings.TrimPrefix(path[len(collection):], "/")
}

func refuse(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	w.Write(encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": text, "code": code}))
}
