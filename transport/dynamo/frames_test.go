package dynamo

import (
	"bytes"
	"testing"

	"mockbench/transport/requestplane"
)

// TestTokenFrameIsTheEncodedFrame compares the prepared frame with the encoder's, around the edges of its range.
func TestTokenFrameIsTheEncodedFrame(t *testing.T) {
	frame := newTokenFrame()
	for _, id := range []uint32{0, 127, 128, 255, 256, 1000, 1999, 65534, 65535, 65536, 1<<32 - 1} {
		var got, want requestplane.Stream
		frame.put(&got, id)
		o := output{token: id, hasToken: true}
		want.Encode(o.encode)
		if !bytes.Equal(got.Pending(), want.Pending()) {
			t.Errorf("token %d: % x, want % x", id, got.Pending(), want.Pending())
		}
	}
}

// FuzzBody asserts that no body ends the process and that tokens are what was sent.
func FuzzBody(f *testing.F) {
	f.Add([]byte("\x81\xa9token_ids\x93\x01\x02\x03"), false)
	f.Add([]byte("\x81\xa9token_ids\xc4\x04\x01\x00\x00\x00"), false)
	f.Add([]byte("\x81\xa9token_ids\xdd\xff\xff\xff\xff"), false)
	f.Add([]byte(`{"token_ids":[1],"stop_conditions":{"max_tokens":3},"routing":{"dp_rank":0}}`), true)
	f.Fuzz(func(t *testing.T, b []byte, text bool) {
		codec := requestplane.MsgPack
		if text {
			codec = requestplane.JSON
		}
		p, err := decodeBody(codec, b)
		if err == nil && p.Tokens == nil {
			t.Errorf("%q is accepted without tokens", b)
		}
		if err == nil && len(p.Tokens) > len(b) {
			t.Errorf("%d tokens come out of %d bytes", len(p.Tokens), len(b))
		}
	})
}

// BenchmarkTokenFrame is the cost of one token in an answer without the write.
func BenchmarkTokenFrame(b *testing.B) {
	frame := newTokenFrame()
	var s requestplane.Stream
	b.ReportAllocs()
	for i := range b.N {
		if i%256 == 0 {
			s.Discard()
		}
		frame.put(&s, uint32(1000+i%1000))
	}
}
