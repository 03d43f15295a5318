package report

import "mockbench/engine"

// Agentic is what a summary says of the plays of a graph.
type Agentic struct {
	Graph     AgenticGraph
	Plays     []PlayOutcome
	Events    int    // of the lifecycle log
	Digest    string // of the lifecycle log
	latencies exact
}

// AgenticGraph describes the graph that was played.
type AgenticGraph struct {
	Source struct {
		Format string `json:"format"`
		Digest string `json:"digest"`
	} `json:"source"`
	Digest    string   `json:"graph_digest"`
	BlockSize int      `json:"block_size"`
	Nodes     int      `json:"node_count"`
	Plays     int      `json:"play_count"`
	Models    []string `json:"source_models"`
}

// PlayOutcome is what became of a play.
type PlayOutcome struct {
	ID       string       `json:"play_id"`
	Status   string       `json:"status"` // "completed", "failed" or "incomplete"
	Terminal *engine.Time `json:"causal_terminal_ms,omitempty"`
	Settled  *engine.Time `json:"settled_at_ms,omitempty"`
	Failure  *string      `json:"failure_request_id,omitempty"`
	Reason   *string      `json:"failure_status,omitempty"`
}

// AddLatency notes how long a play took that was complete and successful, in milliseconds.
func (a *Agentic) AddLatency(ms float64) { a.latencies.add(ms) }

func (a *Agentic) addTo(f *Fields) {
	done := 0
	for i := range a.Plays {
		if a.Plays[i].Status == "completed" {
			done++
		}
	}
	f.add("total_trajectories", len(a.Plays))
	f.add("completed_trajectories", done)
	f.add("incomplete_trajectories", len(a.Plays)-done)
	d := a.latencies.stats()
	f.addStatistics("trajectory_e2e_latency_ms", d)
	f.add("p50_trajectory_e2e_latency_ms", d.Median)
	f.add("agentic_graph", a.Graph)
	f.add("agentic_lifecycle_event_count", a.Events)
	f.add("agentic_lifecycle_digest", a.Digest)
	f.add("agentic_play_outcomes", a.Plays)
}
