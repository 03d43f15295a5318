package eventplane

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mockbench/kv"
	"mockbench/transport/wire"
)

func goldenQueries(t *testing.T) {
	var cases []struct {
		Name   string
		Expect struct {
			Body struct {
				Worker uint64  `json:"worker_id"`
				Rank   uint64  `json:"dp_rank"`
				Start  *uint64 `json:"start_event_id"`
				End    *uint64 `json:"end_event_id"`
			}
			BodyHex string `json:"body_hex"`
		}
	}
	if !goldenFile(t, "recovery-frontend-requests.json", &cases) {
		return
	}
	for _, c := range cases {
		q, err := decodeQuery(fromHex(t, c.Expect.BodyHex), false)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		got := []*uint64{q.Worker, q.Rank, q.Start, q.End}
		want := []*uint64{&c.Expect.Body.Worker, &c.Expect.Body.Rank, c.Expect.Body.Start, c.Expect.Body.End}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", c.Name, d)
		}
	}
}

type goldenRecoveryCase struct {
	Name  string
	Input struct {
		Request string `json:"request_msgpack_hex"`
	}
	Expect struct {
		Kind     string
		Response struct {
			Data map[string]json.RawMessage
		}
		ResponseHex string `json:"response_msgpack_hex"`
	}
}

type goldenAnswer struct {
	Events []json.RawMessage
	Last   uint64 `json:"last_event_id"`
}

// goldenRecovery builds, for each run, a rank with the history that the recorded answers tell, and asks it what the
// reference was asked.
func goldenRecovery(t *testing.T) {
	var raw []json.RawMessage
	if !goldenFile(t, "recovery.json", &raw) {
		return
	}
	runs := map[string]*kvSink{}
	for _, text := range raw {
		var c goldenRecoveryCase
		if err := json.Unmarshal(text, &c); err != nil {
			c.Expect.Kind = "" // the reference opens no response stream: the answer is a text
			var named struct {
				Name  string
				Input struct {
					Request string `json:"request_msgpack_hex"`
				}
			}
			if err := json.Unmarshal(text, &named); err != nil {
				t.Fatal(err)
			}
			c.Name, c.Input.Request = named.Name, named.Input.Request
		}
		t.Run(c.Name, func(t *testing.T) {
			run, _, _ := strings.Cut(c.Name, ":")
			if runs[run] == nil {
				p, _ := capturing(KVEvents, 1)
				runs[run] = newKVSink(0, source{worker: 0x1111222233334444}, p, nil, false, func(err error) { t.Error(err) })
				t.Cleanup(runs[run].close)
			}
			compareRecovery(t, runs[run], &c)
		})
	}
}

func compareRecovery(t *testing.T, k *kvSink, c *goldenRecoveryCase) {
	// The recorded answer tells what had been published before: enter what is missing.
	for _, variant := range []string{"Events", "TreeDump"} {
		var a goldenAnswer
		if text := c.Expect.Response.Data[variant]; text != nil {
			if err := json.Unmarshal(text, &a); err != nil {
				t.Fatal(err)
			}
			if want := c.Expect.ResponseHex; want != "" {
				sameBytes(t, "re-encoding", encodeAnswer(t, variant, a), fromHex(t, want))
			}
			teach(k, eventsFromJSON(t, a.Events), a.Last)
		}
	}
	frame, err := newRecovery(k).Handle(context.Background(), fromHex(t, c.Input.Request), false)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Data     map[string]json.RawMessage
		Complete *bool `json:"complete_final"`
	}
	if err := decode(frame, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Data) != 1 || got.Complete == nil || *got.Complete {
		t.Fatalf("frame %v", got)
	}
	if want := c.Expect.ResponseHex; want != "" && c.Expect.Kind != "TreeDump" {
		sameBytes(t, "answer", frame, fromHex(t, want))
	}
	switch c.Expect.Kind {
	case "":
		if got.Data["Error"] == nil {
			t.Errorf("answer %v to a query that cannot be understood, want an error", got.Data)
		}
	case "TreeDump":
		compareDump(t, got.Data["TreeDump"], c.Expect.Response.Data["TreeDump"])
	default:
		if d := cmp.Diff(exact(t, c.Expect.Response.Data[c.Expect.Kind]), exact(t, got.Data[c.Expect.Kind])); d != "" {
			t.Errorf("answer (want -, got +):\n%s", d)
		}
	}
}

// exact decodes JSON without rounding numbers.
func exact(t *testing.T, text json.RawMessage) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func encodeAnswer(t *testing.T, variant string, a goldenAnswer) []byte {
	b := append([]byte("\x82\xa4data\x81"), wire.AppendString(nil, variant)...)
	n := 2
	if variant == "TreeDump" {
		n = 3
	}
	b = append(wire.AppendMap(b, n), "\xa6events"...)
	b = append(b, encodeEvents(eventsFromJSON(t, a.Events))...)
	b = wire.AppendUint(append(b, "\xadlast_event_id"...), a.Last)
	if n == 3 {
		b = append(b, "\xabreset_scope\xa3all"...)
	}
	return append(b, "\xaecomplete_final\xc2"...)
}

// teach brings a rank's history to where a recorded answer says it was. Real ids that follow the latest one are
// entered as events; a fresh dump replaces the content.
func teach(k *kvSink, events []RouterEvent, last uint64) {
	k.work.Lock()
	defer k.work.Unlock()
	h := &k.pipeline.history
	if h.last >= last {
		return
	}
	known := h.last > 0 // the dump in the answer is older than what was taught before
	fresh := len(events) > 0 && events[0].Event.ID == 0
	for _, e := range events {
		real := !fresh || e.Event.ID > uint64(len(events))
		if real && e.Event.ID != h.last+1 || !real && known {
			continue
		}
		tier := &h.tiers[e.Event.Tier]
		if e.Event.Kind == kv.Stored {
			tier.store(e.Event, e.Sequence, e.Local)
		} else {
			for _, hash := range e.Sequence {
				tier.remove(hash)
			}
		}
		if real {
			h.last = e.Event.ID
			h.ring.add(e.Event, e.Sequence, e.Local)
		}
	}
	h.last = last
}

// compareDump compares what is resident after applying two dumps to an empty rank.
func compareDump(t *testing.T, got, want json.RawMessage) {
	t.Helper()
	resident := func(text json.RawMessage) (content map[string]string, last uint64) {
		var a goldenAnswer
		if err := json.Unmarshal(text, &a); err != nil {
			t.Fatal(err)
		}
		content = map[string]string{}
		for _, e := range eventsFromJSON(t, a.Events) {
			parent := fmt.Sprint(e.Event.HasParent, e.Event.Parent)
			for i, hash := range e.Sequence {
				key := fmt.Sprint(e.Event.Tier, " ", hash)
				if e.Event.Kind == kv.Removed {
					delete(content, key)
					continue
				}
				content[key] = fmt.Sprint(parent, " ", e.Local[i])
				parent = fmt.Sprint(true, hash)
			}
		}
		return content, a.Last
	}
	gotContent, gotLast := resident(got)
	wantContent, wantLast := resident(want)
	if d := cmp.Diff(wantContent, gotContent); d != "" || gotLast != wantLast {
		t.Errorf("last event %d, want %d; content differs:\n%s", gotLast, wantLast, d)
	}
}
