package requestplane

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"mockbench/transport/goldencase"
)

func parse(t *testing.T, c goldencase.Case, input, expect any) {
	t.Helper()
	goldencase.Parse(t, c.Input, input)
	goldencase.Parse(t, c.Expect, expect)
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestGoldenRequestPlane checks the bytes on the wire. What a worker does with them is checked where the worker is.
func TestGoldenRequestPlane(t *testing.T) {
	for _, c := range goldencase.Read(t, "request-plane", "primitives.jsonl") {
		kind, _, _ := strings.Cut(c.Name, "/")
		if check := primitives[kind]; check != nil {
			t.Run("primitives/"+c.Name, func(t *testing.T) { check(t, c) })
		}
	}
	for _, c := range goldencase.Read(t, "request-plane", "request-frames.jsonl") {
		t.Run("request-frames/"+c.Name, func(t *testing.T) { checkRequestFrame(t, c) })
	}
	for _, c := range goldencase.Read(t, "request-plane", "frame-encoding.jsonl") {
		t.Run("frame-encoding/"+c.Name, func(t *testing.T) { checkFrameEncoding(t, c) })
	}
}

// primitives are the kinds of rule that this package implements.
var primitives = map[string]func(*testing.T, goldencase.Case){
	"two-part":     checkTwoPart,
	"ack":          checkAck,
	"path":         checkPath,
	"limit":        checkLimit,
	"nats-subject": checkSubject,
	"quic-lane":    checkLane,
	"quic-frame":   checkQUICFrame,
}

func checkTwoPart(t *testing.T, c goldencase.Case) {
	var in struct {
		Header  string
		BodyHex string `json:"body_hex"`
	}
	var want struct{ Hex string }
	parse(t, c, &in, &want)
	got := AppendMessage(nil, []byte(in.Header), unhex(t, in.BodyHex))
	if hex.EncodeToString(got) != want.Hex {
		t.Errorf("got %x, want %s", got, want.Hex)
	}
	header, body, err := ReadMessage(bytes.NewReader(got), 1<<20)
	if err != nil || string(header) != in.Header || hex.EncodeToString(body) != in.BodyHex {
		t.Errorf("read back %q, %x, %v", header, body, err)
	}
}

func checkAck(t *testing.T, c goldencase.Case) {
	var in struct{ Text string }
	var want struct {
		Hex   string
		Reads string `json:"frontend_reads"`
	}
	parse(t, c, &in, &want)
	if got := hex.EncodeToString(Ack(in.Text).Append(nil)); got != want.Hex {
		t.Errorf("got %s, want %s", got, want.Hex)
	}
	if got := reads(in.Text); got != want.Reads {
		t.Errorf("%q is read as %s, want %s", in.Text, got, want.Reads)
	}
}

// reads says how a frontend understands an acknowledgement.
func reads(ack string) string {
	switch {
	case strings.HasPrefix(ack, prefixOverloaded):
		return "overloaded"
	case strings.HasPrefix(ack, prefixUnavailable):
		return "unavailable"
	}
	return "accepted"
}

func checkPath(t *testing.T, c goldencase.Case) {
	var in struct {
		Namespace, Component, Endpoint string
		Instance                       uint64 `json:"instance_id"`
	}
	var want struct{ Path string }
	parse(t, c, &in, &want)
	if got := Name(in).Path(); got != want.Path {
		t.Errorf("got %s, want %s", got, want.Path)
	}
}

func checkLimit(t *testing.T, c goldencase.Case) {
	var in struct {
		Total int `json:"total_len"`
		Max   int
	}
	var want struct {
		Accepted bool
		AckText  string `json:"ack_text"`
	}
	parse(t, c, &in, &want)
	const path, headers = "p", "{}"
	payload := make([]byte, in.Total-frameOverhead-len(path)-len(headers))
	frame := appendFrame(nil, []byte(path), []byte(headers), payload)
	if !want.Accepted {
		frame = frame[:len(frame)-len(payload)] // a refusal must not wait for the payload
	}
	f, err := ReadFrame(bufio.NewReader(bytes.NewReader(frame)), in.Max)
	if want.Accepted {
		if err != nil || len(f.Payload) != len(payload) {
			t.Errorf("got %d bytes, %v, want the whole payload", len(f.Payload), err)
		}
		return
	}
	var size *SizeError
	if !errors.As(err, &size) {
		t.Fatalf("got %v, want a SizeError", err)
	}
	if got := ackTooLarge(size); string(got) != want.AckText {
		t.Errorf("acknowledged %q, want %q", got, want.AckText)
	}
}

func checkRequestFrame(t *testing.T, c goldencase.Case) {
	var in struct {
		FrameHex string `json:"frame_hex"`
	}
	var want struct {
		Path     string
		Headers  map[string]string
		Control  any
		CallHome CallHome `json:"call_home"`
		Body     any
		TotalLen int `json:"total_len"`
	}
	parse(t, c, &in, &want)
	raw := unhex(t, in.FrameHex)
	f, err := ReadFrame(bufio.NewReader(bytes.NewReader(raw)), want.TotalLen)
	if err != nil {
		t.Fatal(err)
	}
	var headers map[string]string
	if err := json.Unmarshal(f.Headers, &headers); err != nil {
		t.Fatal(err)
	}
	header, body, err := SplitMessage(f.Payload)
	if err != nil {
		t.Fatal(err)
	}
	control, err := ParseControl(header)
	if err != nil {
		t.Fatal(err)
	}
	var fields any
	if err := json.Unmarshal(header, &fields); err != nil {
		t.Fatal(err)
	}
	codec, _ := control.Codec()
	same(t, "path", want.Path, f.Path)
	same(t, "headers", want.Headers, headers)
	same(t, "control message", want.Control, fields)
	same(t, "return address", want.CallHome, *control.Home.(*CallHome))
	same(t, "body", want.Body, decodeAny(t, codec, body))
	if f.sentAt().IsZero() {
		t.Error("the sending time was not read")
	}
}

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-7)); d != "" {
		t.Errorf("%s: -want +got\n%s", what, d)
	}
}

// decodeAny decodes a body and gives it the form that the recorded cases have.
func decodeAny(t *testing.T, codec Codec, body []byte) any {
	t.Helper()
	var v any
	if err := codec.Unmarshal(body, &v); err != nil {
		t.Fatal(err)
	}
	return plain(v)
}

func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = plain(v[k])
		}
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case []byte:
		return "bin:" + hex.EncodeToString(v)
	case int8:
		return float64(v)
	case int16:
		return float64(v)
	case int32:
		return float64(v)
	case int64:
		return float64(v)
	case uint8:
		return float64(v)
	case uint16:
		return float64(v)
	case uint32:
		return float64(v)
	case uint64:
		return float64(v)
	case float32:
		return float64(v)
	}
	return v
}

func checkFrameEncoding(t *testing.T, c goldencase.Case) {
	var in struct {
		Codec   string
		Payload json.RawMessage
	}
	var want struct {
		Hex string `json:"two_part_hex"`
	}
	parse(t, c, &in, &want)
	codec, err := ParseCodec(in.Codec)
	if err != nil {
		t.Fatal(err)
	}
	s := Stream{codec: codec}
	s.Encode(func(e *Encoder) { transcode(t, e, in.Payload) })
	if got := hex.EncodeToString(s.pending); got != want.Hex {
		t.Errorf("got  %s\nwant %s", got, want.Hex)
	}
}

// transcode writes a JSON document with its keys in their order.
func transcode(t *testing.T, e *Encoder, doc json.RawMessage) {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	token, err := d.Token()
	if err != nil {
		t.Fatal(err)
	}
	switch v := token.(type) {
	case json.Delim:
		keys, values := elements(t, d, v == '{')
		if v == '{' {
			e.Map(len(values))
			for i, value := range values {
				e.Key(keys[i])
				transcode(t, e, value)
			}
			e.EndMap()
			return
		}
		e.Array(len(values))
		for _, value := range values {
			transcode(t, e, value)
		}
		e.EndArray()
	case string:
		e.String(v)
	case bool:
		e.Bool(v)
	case nil:
		e.Nil()
	case json.Number:
		if n, err := v.Int64(); err == nil && n >= 0 {
			e.Uint(uint64(n))
			return
		}
		f, err := v.Float64()
		if err != nil || f != math.Trunc(f) && math.IsInf(f, 0) {
			t.Fatalf("number %s: %v", v, err)
		}
		e.Float(f)
	}
}

func elements(t *testing.T, d *json.Decoder, keyed bool) (keys []string, values []json.RawMessage) {
	for d.More() {
		if keyed {
			key, err := d.Token()
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, key.(string))
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			t.Fatal(err)
		}
		values = append(values, value)
	}
	return keys, values
}

func appendFrame(b, path, headers, payload []byte) []byte {
	b = append(b, byte(len(path)>>8), byte(len(path)))
	b = append(b, path...)
	b = append(b, byte(len(headers)>>8), byte(len(headers)))
	b = append(b, headers...)
	b = append(b, byte(len(payload)>>24), byte(len(payload)>>16), byte(len(payload)>>8), byte(len(payload)))
	return append(b, payload...)
}
