package kubetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// one serves the requests about a single object.
func (s *Server) one(w http.ResponseWriter, r *http.Request, collection, name string, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, there := s.objects[collection+"/"+name]
	missing := func() { refuse(w, http.StatusNotFound, fmt.Sprintf("%s %q not found", Resources, name)) }
	switch r.Method {
	case http.MethodGet:
		if !there {
			missing()
			return
		}
		w.Write(encode(o))
	case http.MethodPatch:
		s.apply(w, r, collection, body)
	case http.MethodDelete:
		var options struct{ Preconditions struct{ UID string } }
		json.Unmarshal(body, &options)
		switch uid := options.Preconditions.UID; {
		case !there:
			missing()
		case uid != "" && uid != o["metadata"].(map[string]any)["uid"]:
			refuse(w, http.StatusConflict, "the UID in the precondition does not match")
		default:
			s.remove(collection, name)
			w.Write(encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Success"}))
		}
	default:
		refuse(w, http.StatusMethodNotAllowed, "the server does not allow this method on the requested resource")
	}
}

// apply is server-side apply with a single manager, who owns all fields: the object becomes what the body says.
func (s *Server) apply(w http.ResponseWriter, r *http.Request, collection string, body []byte) {
	var o object
	decode := json.NewDecoder(strings.NewReader(string(body)))
	decode.UseNumber() // ids do not fit a float
	switch err := decode.Decode(&o); {
	case r.Header.Get("Content-Type") != "application/apply-patch+yaml":
		refuse(w, http.StatusUnsupportedMediaType, "the body of the request was in an unknown format")
		return
	case err != nil:
		refuse(w, http.StatusBadRequest, err.Error())
		return
	case r.URL.Query().Get("fieldManager") == "":
		refuse(w, http.StatusUnprocessableEntity, "fieldManager: Required value: is required for apply patch")
		return
	}
	o, created := s.put(collection, o)
	if created {
		w.WriteHeader(http.StatusCreated)
	}
	w.Write(encode(o))
}

func (s *Server) list(w http.ResponseWriter, r *http.Request, collection string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := []object{}
	for path, o := range s.objects {
		if c, _ := split(path); c == collection && selected(r, labels(o)) {
			items = append(items, o)
		}
	}
	slices.SortFunc(items, func(a, b object) int {
		return strings.Compare(fmt.Sprint(a["metadata"].(map[string]any)["name"]), fmt.Sprint(b["metadata"].(map[string]any)["name"]))
	})
	version, kind := "nvidia.com/v1alpha1", "DynamoWorkerMetadataList"
	if strings.HasSuffix(collection, Slices) {
		version, kind = "discovery.k8s.io/v1", "EndpointSliceList"
	}
	w.Write(encode(map[string]any{"apiVersion": version, "kind": kind, "items": items,
		"metadata": map[string]any{"resourceVersion": fmt.Sprint(s.version)}}))
}

func selected(r *http.Request, labels string) bool {
	selector := r.URL.Query().Get("labelSelector")
	return selector == "" || slices.Contains(strings.Split(labels, ","), selector)
}

// watch streams events until the client's time is over.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, collection string) {
	after, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	seconds, err := strconv.Atoi(r.URL.Query().Get("timeoutSeconds"))
	if err != nil {
		seconds = 300
	}
	timeout := time.NewTimer(time.Duration(seconds) * time.Second)
	defer timeout.Stop()
	flush := http.NewResponseController(w)
	flush.Flush()
	for {
		s.mu.Lock()
		changed := s.changed
		var lines [][]byte
		for _, e := range s.events {
			if e.version > after && e.path == collection && selected(r, e.labels) {
				lines = append(lines, e.line)
			}
		}
		after = s.version
		s.mu.Unlock()
		for _, line := range lines {
			if _, err := w.Write(line); err != nil {
				return
			}
		}
		flush.Flush()
		select {
		case <-changed:
		case <-timeout.C:
			return
		case <-r.Context().Done():
			return
		case <-s.ended:
			return
		}
	}
}
