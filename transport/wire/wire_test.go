package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmihailenco/msgpack/v5"
)

func TestCheckRefusesHostileInput(t *testing.T) {
	for _, c := range []struct {
		name string
		in   []byte
		want error
	}{
		{"empty", nil, ErrTruncated},
		{"array of 2^32-1", []byte{0xdd, 0xff, 0xff, 0xff, 0xff}, ErrLength},
		{"map of 2^32-1", []byte{0xdf, 0xff, 0xff, 0xff, 0xff}, ErrLength},
		{"map with half an entry", []byte{0x81, 0x01}, ErrLength},
		{"string longer than input", []byte{0xdb, 0xff, 0xff, 0xff, 0xff, 'a'}, ErrLength},
		{"binary longer than input", []byte{0xc4, 0x02, 0x00}, ErrLength},
		{"cut integer", []byte{0xcf, 0x00}, ErrTruncated},
		{"cut in an array", []byte{0x92, 0xcd, 0x00}, ErrTruncated},
		{"unused code", []byte{0x91, 0xc1}, ErrCode},
		{"deep nesting", bytes.Repeat([]byte{0x91}, 1<<20), ErrDepth},
		{"two values", []byte{0x01, 0x02}, ErrTrailing},
		{"extension too long", []byte{0xc9, 0xff, 0xff, 0xff, 0xff, 0x01}, ErrLength},
	} {
		if err := Check(c.in); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
}

func TestCheckAcceptsEveryType(t *testing.T) {
	values := []any{nil, true, false, 0, 127, 128, 1 << 20, uint64(math.MaxUint64), -1, -33, -1000, math.MinInt64,
		float32(1.5), 2.25, "", "text", string(make([]byte, 300)), string(make([]byte, 70000)), []byte{1},
		make([]byte, 300), make([]byte, 70000), make([]int, 20), make([]int, 70000),
		map[string]any{"a": []any{1, map[string]any{"b": nil}}}}
	for _, v := range values {
		b, err := msgpack.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := Check(b); err != nil {
			t.Errorf("%T of %d bytes: %v", v, len(b), err)
		}
	}
	for _, ext := range [][]byte{{0xd4, 1, 0}, {0xd5, 1, 0, 0}, append([]byte{0xd8, 1}, make([]byte, 16)...), {0xc7, 2, 1, 0, 0}} {
		if err := Check(ext); err != nil {
			t.Errorf("extension % x: %v", ext, err)
		}
	}
}

func TestAppendMatchesLibrary(t *testing.T) {
	library := func(v any) []byte {
		var b bytes.Buffer
		e := msgpack.NewEncoder(&b)
		e.UseCompactInts(true)
		if err := e.Encode(v); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	same := func(name string, got, want []byte) {
		t.Helper()
		if !bytes.Equal(got, want) {
			t.Errorf("%s: % x, want % x", name, got[:min(len(got), 12)], want[:min(len(want), 12)])
		}
	}
	for _, v := range []uint64{0, 1, 127, 128, 255, 256, 65535, 65536, 1<<32 - 1, 1 << 32, math.MaxUint64} {
		same("uint", AppendUint(nil, v), library(v))
	}
	for _, n := range []int{0, 31, 32, 255, 256, 65535, 65536} {
		same("string", AppendString(nil, string(make([]byte, n))), library(string(make([]byte, n))))
		same("binary", append(AppendBinaryHead(nil, n), make([]byte, n)...), library(make([]byte, n)))
		same("array", append(AppendArray(nil, n), make([]byte, n)...), library(make([]int, n)))
	}
	same("float", AppendFloat(nil, 0), library(0.0))
	same("nil", AppendNil(nil), library(nil))
	same("bool", AppendBool(AppendBool(nil, true), false), []byte{0xc3, 0xc2})
	same("map", AppendMap(nil, 20), []byte{0xde, 0, 20})
}

func TestAppendJSON(t *testing.T) {
	in := map[string]any{"a": nil, "b": []any{true, -5, uint64(math.MaxUint64), 1.5, "x\"y"}, "c": map[string]any{}}
	msg, err := msgpack.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	got, err := AppendJSON(nil, msg)
	if err != nil {
		t.Fatal(err)
	}
	var have, want any
	text, _ := json.Marshal(in)
	if err := json.Unmarshal(got, &have); err != nil {
		t.Fatalf("%s: %v", got, err)
	}
	_ = json.Unmarshal(text, &want)
	if d := cmp.Diff(want, have); d != "" {
		t.Error(d)
	}
	if got, _ := AppendJSON(nil, AppendFloat(nil, 0)); string(got) != "0.0" {
		t.Errorf("a whole float becomes %s, want 0.0", got)
	}
	for _, bad := range [][]byte{{0xd4, 1, 0}, {0x81, 0x01, 0x02}, AppendFloat(nil, math.NaN()), {0x91}} {
		if _, err := AppendJSON(nil, bad); err == nil {
			t.Errorf("% x was translated", bad)
		}
	}
}

// FuzzCheck asserts that what passes Check can be given to the decoder and the JSON writer.
func FuzzCheck(f *testing.F) {
	f.Add([]byte{0x82, 0xa1, 'a', 0x01, 0xa1, 'b', 0xc0})
	f.Add([]byte{0xdd, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		if Check(b) != nil {
			return
		}
		var v any
		_ = msgpack.Unmarshal(b, &v)
		_, _ = AppendJSON(nil, b)
	})
}
