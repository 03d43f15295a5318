package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mockbench/engine"
	"mockbench/transport/discovery"
	"mockbench/transport/discovery/kube/kubetest"
	"mockbench/transport/requestplane"
)

var pod = Pod{Name: "worker-0", UID: "uid-w0", Namespace: "ns1"}

// serve starts an API server that the environment names.
func serve(t *testing.T) *kubetest.Server {
	t.Helper()
	s := kubetest.Start()
	t.Cleanup(s.Close)
	path, err := s.Kubeconfig(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", path)
	return s
}

func open(t *testing.T, o Options) *Backend {
	t.Helper()
	b, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close(context.Background()) })
	return b
}

// content reads the resource of the pod.
func content(t *testing.T, s *kubetest.Server, name string) *resource {
	t.Helper()
	data := s.Resource("ns1", name)
	if data == nil {
		return nil
	}
	r := new(resource)
	if err := json.Unmarshal(data, r); err != nil {
		t.Fatal(err)
	}
	return r
}

var place = discovery.Endpoint{Namespace: "dynamo", Component: "backend", Name: "generate"}

func instance(id uint64, name string) discovery.Instance {
	e := place
	e.Name = name
	return discovery.Instance{Endpoint: e, ID: id, Transport: discovery.Transport{TCP: "192.0.2.2:1/" + requestplane.Name{Namespace: e.Namespace, Component: e.Component, Endpoint: e.Name, Instance: id}.Path()},
		Device: "cuda", Codec: "msgpack"}
}

func TestLifeOfAResource(t *testing.T) {
	s := serve(t)
	b := open(t, Options{Pod: pod})
	m, err := b.Join(t.Context())
	if err != nil || m.ID != 1186445869714687 || m.Lost != nil {
		t.Fatalf("joined as %+v, %v", m, err)
	}
	if _, err := b.Join(t.Context()); !errors.Is(err, ErrOneWorker) {
		t.Errorf("a second worker gets %v", err)
	}
	record := instance(m.ID, "generate")
	card := discovery.Model{Endpoint: place, ID: m.ID, Card: json.RawMessage(`{"display_name":"m"}`)}
	for _, r := range []discovery.Record{card, record} {
		if err := discovery.Publish(t.Context(), m, r); err != nil {
			t.Fatal(err)
		}
	}
	list, err := b.List(t.Context(), discovery.Instances)
	if err != nil || len(list) != 1 || list["dynamo/backend/generate/43710f49c0cff"] == nil {
		t.Errorf("listed %v, %v", list, err)
	}
	if err := m.Delete(t.Context(), record.Key()); err != nil {
		t.Fatal(err)
	}
	if r := content(t, s, "worker-0"); len(r.Spec.Data.Endpoints) != 0 || len(r.Spec.Data.Models) != 1 {
		t.Errorf("after the deletion of the instance: %+v", r)
	}
	before := len(s.Requests())
	if err := m.Delete(t.Context(), record.Key()); err != nil || len(s.Requests()) != before {
		t.Errorf("deleting again: %v", err)
	}
	if err := b.Close(t.Context()); err != nil || content(t, s, "worker-0") != nil {
		t.Errorf("closed with %v, the resource is still there", err)
	}
	if err := discovery.Publish(t.Context(), m, record); !errors.Is(err, discovery.ErrClosed) {
		t.Errorf("publishing after the end: %v", err)
	}
}

// TestResourceOfAnEarlierProcess leaves a resource that was there before, but empty.
func TestResourceOfAnEarlierProcess(t *testing.T) {
	s := serve(t)
	first := open(t, Options{Pod: pod})
	if err := discovery.Publish(t.Context(), first, instance(first.NewID(), "generate")); err != nil {
		t.Fatal(err)
	}
	second := open(t, Options{Pod: pod})
	if err := discovery.Publish(t.Context(), second, instance(second.NewID(), "other")); err != nil {
		t.Fatal(err)
	}
	if r := content(t, s, "worker-0"); len(r.Spec.Data.Endpoints) != 1 {
		t.Errorf("the second process left %v", r.Spec.Data.Endpoints)
	}
	if err := second.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := content(t, s, "worker-0"); r == nil || len(r.Spec.Data.Endpoints) != 0 {
		t.Errorf("after the end: %+v", r)
	}
}

// TestContainerDeletesItsStaleResource also covers a resource that is not the pod's own.
func TestContainerDeletesItsStaleResource(t *testing.T) {
	s := serve(t)
	p := pod
	p.Container = "engine-0"
	first := open(t, Options{Pod: p})
	if err := discovery.Publish(t.Context(), first, instance(first.NewID(), "generate")); err != nil {
		t.Fatal(err)
	}
	r := content(t, s, "worker-0-engine-0")
	if o := r.Metadata.Owners[0]; o.Controller || o.Name != "worker-0" {
		t.Errorf("owner %+v", o)
	}
	open(t, Options{Pod: p})
	if content(t, s, "worker-0-engine-0") != nil {
		t.Error("the stale resource is still there")
	}
	s.Fail(1, http.StatusForbidden)
	if _, err := Open(t.Context(), Options{Pod: p}); err == nil || !strings.Contains(err.Error(), "403 told to fail") {
		t.Errorf("refused with %v", err)
	}
}

func TestDeletedResourceComesBack(t *testing.T) {
	s := serve(t)
	b := open(t, Options{Pod: pod, Refresh: 10 * time.Millisecond})
	if err := discovery.Publish(t.Context(), b, instance(b.NewID(), "generate")); err != nil {
		t.Fatal(err)
	}
	s.Delete("ns1", "worker-0")
	for end := time.Now().Add(20 * time.Second); b.Restored() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the resource does not come back")
		}
	}
	if r := content(t, s, "worker-0"); r == nil || len(r.Spec.Data.Endpoints) != 1 {
		t.Errorf("it came back as %+v", r)
	}
	if err := b.Close(t.Context()); err != nil || s.Resource("ns1", "worker-0") != nil {
		t.Errorf("closed with %v, the resource is still there", err)
	}
}

func TestFailures(t *testing.T) {
	s := serve(t)
	b := open(t, Options{Pod: pod})
	record := instance(b.NewID(), "generate")
	s.Fail(2, http.StatusServiceUnavailable)
	if err := discovery.Publish(t.Context(), b, record); err != nil {
		t.Errorf("a server that is away for a moment: %v", err)
	}
	other := instance(b.NewID(), "other")
	s.Fail(1, http.StatusForbidden)
	err := discovery.Publish(t.Context(), b, other)
	if want := fmt.Sprintf("kubernetes at %s: PATCH /apis/nvidia.com/v1alpha1/namespaces/ns1/dynamoworkermetadatas/worker-0: 403 told to fail", s.URL()); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := b.Delete(t.Context(), other.Key()); err != nil {
		t.Fatal(err)
	}
	if last := s.Requests()[len(s.Requests())-1]; last.Method != http.MethodPatch || bytes.Contains(last.Body, []byte("other")) {
		t.Errorf("a record that may have been written is taken back with %s %s", last.Method, last.Body)
	}
}

func TestNoServer(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if _, err := Open(t.Context(), Options{Pod: pod}); err == nil || !strings.Contains(err.Error(), "KUBECONFIG names no cluster (tried ") {
		t.Errorf("without a configuration: %v", err)
	}
	s := serve(t)
	s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := Open(ctx, Options{Pod: pod}); err == nil || !strings.Contains(err.Error(), s.URL()) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("with a server that is gone: %v", err)
	}
}

func TestPodFromEnvironment(t *testing.T) {
	files := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(files, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("pod_name", " from-file\n")
	write("pod_uid", "\n")
	for _, c := range []struct {
		env      map[string]string
		want     Pod
		resource string
		wrong    string // setting that is refused
		warnings int
	}{
		{env: map[string]string{"POD_UID": "u"}, want: Pod{Name: "from-file", UID: "u", Namespace: "default"}, resource: "from-file", warnings: 1},
		{env: map[string]string{"POD_UID": "u", "POD_NAMESPACE": "n", "DYN_KUBE_DISCOVERY_MODE": "pod", "CONTAINER_NAME": "c"},
			want: Pod{Name: "from-file", UID: "u", Namespace: "n"}, resource: "from-file"},
		{env: map[string]string{"POD_UID": "u", "POD_NAMESPACE": "n", "DYN_KUBE_DISCOVERY_MODE": "container", "CONTAINER_NAME": "c"},
			want: Pod{Name: "from-file", UID: "u", Namespace: "n", Container: "c"}, resource: "from-file-c"},
		{env: map[string]string{"POD_UID": "u", "POD_NAMESPACE": "n", "DYN_KUBE_DISCOVERY_MODE": "container", "CONTAINER_NAME": "main"},
			want: Pod{Name: "from-file", UID: "u", Namespace: "n", Container: "main"}, resource: "from-file"},
		{env: map[string]string{}, wrong: "POD_UID"},
		{env: map[string]string{"POD_UID": "u", "DYN_KUBE_DISCOVERY_MODE": "container"}, wrong: "CONTAINER_NAME"},
		{env: map[string]string{"POD_UID": "u", "DYN_KUBE_DISCOVERY_MODE": "node"}, wrong: "DYN_KUBE_DISCOVERY_MODE"},
	} {
		got, warnings, err := PodFromEnvironment(files, func(name string) string { return c.env[name] })
		var setting *engine.SettingError
		switch {
		case c.wrong != "":
			if !errors.As(err, &setting) || setting.Setting != c.wrong {
				t.Errorf("%v: got %v, want a refusal of %s", c.env, err, c.wrong)
			}
		case err != nil || got != c.want || got.Resource() != c.resource || len(warnings) != c.warnings:
			t.Errorf("%v: got %+v, %q, %v", c.env, got, warnings, err)
		}
	}
	if _, _, err := PodFromEnvironment(t.TempDir(), func(string) string { return "" }); err == nil || !strings.Contains(err.Error(), "POD_NAME") {
		t.Errorf("nothing set: %v", err)
	}
}

func TestPlacedScopes(t *testing.T) {
	for scope, want := range map[string]string{
		`{"kind":"namespace","name":"n"}`:                                                    "n/",
		`{"kind":"component","namespace":"n","component":"c"}`:                               "n/c",
		`{"kind":"endpoint","endpoint":{"namespace":"n","component":"c","name":"generate"}}`: "n/c",
	} {
		value, err := placed([]byte(`{"instance_id":18446744073709551615,"scope":` + scope + `}`))
		var got struct {
			Namespace, Component string
			ID                   uint64 `json:"instance_id"`
		}
		if err != nil || json.Unmarshal(value, &got) != nil || got.Namespace+"/"+got.Component != want || got.ID != 1<<64-1 {
			t.Errorf("%s: got %s, %v", scope, value, err)
		}
	}
	if _, err := placed([]byte(`[]`)); err == nil {
		t.Error("an array is accepted")
	}
}
