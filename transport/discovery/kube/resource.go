package kube

import (
	"encoding/json"
	"fmt"

	"mockbench/transport/discovery"
)

const (
	apiVersion   = "nvidia.com/v1alpha1"
	kind         = "DynamoWorkerMetadata"
	plural       = "dynamoworkermetadatas"
	fieldManager = "dynamo-worker"
)

// collection is the path of the resources of a namespace.
func collection(namespace string) string {
	return "/apis/" + apiVersion + "/namespaces/" + namespace + "/" + plural
}

// records are the content of a resource: values by key path. Frontends take a missing map for an empty one, and so do
// we when reading.
type records struct {
	Endpoints map[string]json.RawMessage `json:"endpoints"`
	Models    map[string]json.RawMessage `json:"model_cards"`
	Channels  map[string]json.RawMessage `json:"event_channels"`
	Sources   map[string]json.RawMessage `json:"event_sources"`
}

func newRecords() records {
	m := func() map[string]json.RawMessage { return map[string]json.RawMessage{} }
	return records{m(), m(), m(), m()}
}

// bucket returns the map of a bucket.
func (r *records) bucket(name string) map[string]json.RawMessage {
	switch name {
	case discovery.Instances:
		return r.Endpoints
	case discovery.Models:
		return r.Models
	case discovery.EventChannels:
		return r.Channels
	}
	return r.Sources
}

type ownerReference struct {
	APIVersion         string `json:"apiVersion"`
	BlockOwnerDeletion bool   `json:"blockOwnerDeletion"`
	Controller         bool   `json:"controller"`
	Kind               string `json:"kind"`
	Name               string `json:"name"`
	UID                string `json:"uid"`
}

type metadata struct {
	Name   string           `json:"name"`
	UID    string           `json:"uid,omitempty"` // given by the server
	Owners []ownerReference `json:"ownerReferences"`
}

// resource is the custom resource of one worker.
type resource struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`
	Spec       spec     `json:"spec"`
}

type spec struct {
	Data records `json:"data"`
}

// resource returns the resource of a pod with its records. The pod owns it, so that it goes with the pod.
func (p Pod) resource(r records) resource {
	owner := ownerReference{APIVersion: "v1", Controller: p.Resource() == p.Name, Kind: "Pod", Name: p.Name, UID: p.UID}
	return resource{APIVersion: apiVersion, Kind: kind, Spec: spec{r},
		Metadata: metadata{Name: p.Resource(), Owners: []ownerReference{owner}}}
}

// placed returns the value of an event channel with the namespace and component of its scope beside the scope.
func placed(value []byte) (json.RawMessage, error) {
	var body map[string]json.RawMessage
	if err := json.Unmarshal(value, &body); err != nil {
		return nil, fmt.Errorf("event channel: %w", err)
	}
	type place struct{ Namespace, Component, Name string }
	var scope struct {
		place
		Kind     string
		Endpoint place
	}
	if err := json.Unmarshal(body["scope"], &scope); err != nil {
		return nil, fmt.Errorf("scope of an event channel: %w", err)
	}
	at := scope.place
	switch scope.Kind {
	case "endpoint":
		at = scope.Endpoint
	case "namespace":
		at = place{Namespace: scope.Name}
	}
	for name, text := range map[string]string{"namespace": at.Namespace, "component": at.Component} {
		body[name], _ = json.Marshal(text)
	}
	return json.Marshal(body)
}
