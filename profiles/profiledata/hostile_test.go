package profiledata_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"mockbench/engine"
	"mockbench/engine/timing"
	"mockbench/profiles/profiledata"
)

func goodTable() *timing.Table {
	return &timing.Table{PrefillTokens: []float64{1, 100}, PrefillMS: []float64{5, 50},
		ActiveTokens: []float64{0, 1000, 2000}, Context: []float64{1, 500},
		DecodeMS: []float64{5, 5, 6, 7, 8, 9}, DecodeShape: [2]int{3, 2}}
}

// packed returns an NPZ file with some entries in the place of a good table's.
func packed(t testing.TB, replace map[string]string) []byte {
	t.Helper()
	var good bytes.Buffer
	if err := profiledata.WriteNPZ(&good, goodTable()); err != nil {
		t.Fatal(err)
	}
	from, err := zip.NewReader(bytes.NewReader(good.Bytes()), int64(good.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, f := range from.File {
		key := strings.TrimSuffix(f.Name, ".npy")
		text, replaced := replace[key]
		if replaced && text == "" {
			continue
		}
		w, err := z.Create(f.Name)
		if err != nil {
			t.Fatal(err)
		}
		if !replaced {
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			if _, err := b.ReadFrom(r); err != nil {
				t.Fatal(err)
			}
			text = b.String()
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// npy returns an array with a header of any text.
func npy(kind, shape, order string, values ...float64) string {
	head := fmt.Sprintf("{'descr': %s, 'fortran_order': %s, 'shape': %s, }\n", kind, order, shape)
	b := append([]byte("\x93NUMPY\x01\x00"), byte(len(head)), byte(len(head)>>8))
	b = append(b, head...)
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return string(b)
}

func TestHostileFiles(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		name, array string
		kind        engine.Kind
		entry       string
	}{
		{"missing", "decode_itl", engine.KindMissing, ""},
		{"empty entry", "prefill_isl", engine.KindType, " "},
		{"not an array", "prefill_isl", engine.KindType, "hello, this is text"},
		{"other version", "prefill_isl", engine.KindType, "\x93NUMPY\x09\x00\x01\x00 "},
		{"header without end", "prefill_isl", engine.KindType, "\x93NUMPY\x01\x00\xff\xff{'descr'"},
		{"header of 4 GiB", "prefill_isl", engine.KindType, "\x93NUMPY\x02\x00\xff\xff\xff\xff{"},
		{"truncated", "prefill_isl", engine.KindType, npy("'<f8'", "(2,)", "False", 1)},
		{"data after the end", "prefill_isl", engine.KindType, npy("'<f8'", "(2,)", "False", 1, 2, 3)},
		{"huge shape", "prefill_isl", engine.KindType, npy("'<f8'", "(999999999999,)", "False", 1)},
		{"shape that overflows", "decode_itl", engine.KindType, npy("'<f8'", "(4294967296, 4294967296)", "False", 1)},
		{"shape beyond 64 bits", "decode_itl", engine.KindType, npy("'<f8'", "(99999999999999999999, 1)", "False", 1)},
		{"negative shape", "decode_itl", engine.KindType, npy("'<f8'", "(-3, 2)", "False", 1)},
		{"objects", "prefill_isl", engine.KindType, npy("'|O'", "(2,)", "False", 1, 2)},
		{"records", "prefill_isl", engine.KindType, npy("[('a', '<f8')]", "(2,)", "False", 1, 2)},
		{"text", "prefill_isl", engine.KindType, npy("'<U4'", "(2,)", "False", 1, 2)},
		{"whole numbers", "prefill_isl", engine.KindType, npy("'<i8'", "(2,)", "False", 1, 2)},
		{"no dimension", "prefill_isl", engine.KindType, npy("'<f8'", "()", "False", 1)},
		{"no values", "prefill_isl", engine.KindConflict, npy("'<f8'", "(0,)", "False")},
		{"swapped axes", "decode_itl", engine.KindConflict, npy("'<f8'", "(2, 3)", "False", 1, 2, 3, 4, 5, 6)},
		{"axis with NaN", "prefill_isl", engine.KindRange, npy("'<f8'", "(2,)", "False", nan, 2)},
		{"time that is NaN", "prefill_ttft_ms", engine.KindRange, npy("'<f8'", "(2,)", "False", 1, nan)},
		{"infinite time", "decode_itl", engine.KindRange, npy("'<f8'", "(3, 2)", "False", 1, 2, 3, 4, 5, math.Inf(1))},
		{"axis to infinity", "decode_context_length", engine.KindRange, npy("'<f8'", "(2,)", "False", 1, math.Inf(1))},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "p.npz")
			if err := os.WriteFile(path, packed(t, map[string]string{c.array: c.entry}), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := profiledata.Load(path)
			var wrong *timing.ArrayError
			if !errors.As(err, &wrong) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("got %v, want one line about an array", err)
			}
			array := c.array
			if c.name == "no values" {
				array = "prefill_ttft_ms" // which then has too many
			}
			if wrong.Array != array || wrong.Kind != c.kind {
				t.Errorf("got %v (%s), want %s of %s", err, wrong.Kind, c.kind, array)
			}
		})
	}
}

// An array that is larger than allowed is not unpacked.
func TestZipBomb(t *testing.T) {
	const values = 16 << 20
	path := filepath.Join(t.TempDir(), "p.npz")
	bomb := npy("'<f8'", fmt.Sprintf("(%d,)", values), "False") + string(make([]byte, 8*values))
	if err := os.WriteFile(path, packed(t, map[string]string{"prefill_isl": bomb}), 0o600); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := profiledata.Load(path); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("got %v", err)
	}
	runtime.ReadMemStats(&after)
	if bytes := after.TotalAlloc - before.TotalAlloc; bytes > 8<<20 {
		t.Errorf("%d bytes of memory were taken", bytes)
	}
}

func TestWhatAPathIs(t *testing.T) {
	dir := t.TempDir()
	good := packed(t, nil)
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	half := filepath.Dir(write("half/prefill_raw_data.json", []byte("{}")))
	for path, want := range map[string]string{
		write("good.npz", good):                                            "",
		write("good.bin", good):                                            "does not end in .npz",
		write("GOOD.NPZ", good):                                            "does not end in .npz",
		write("cut.npz", good[:len(good)/2]):                               "not an NPZ file",
		write("text.npz", []byte("hello")):                                 "not an NPZ file",
		write("empty.npz", nil):                                            "not an NPZ file",
		write("lacks.npz", packed(t, map[string]string{"decode_itl": ""})): "no array decode_itl",
		filepath.Join(dir, "none.npz"):                                     "no such file",
		dir:                                                                "no selected_prefill_interpolation/raw_data.npz and no prefill_raw_data.json",
		half:                                                               "no selected_decode_interpolation/raw_data.npz and no decode_raw_data.json",
		os.DevNull:                                                         "does not end in .npz",
	} {
		err := profiledata.Check(path)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
}

func TestWrongResults(t *testing.T) {
	const prefill = `{"prefill_isl":[100,200],"prefill_ttft":[10,20]}`
	const decode = `{"x_kv_usage":[0.1,0.5],"y_context_length":[100,100],"z_itl":[5,9],"max_kv_tokens":10000}`
	for _, c := range []struct{ prefill, decode, want string }{
		{prefill, decode, ""},
		{`{"prefill_isl":[100]}`, decode, "prefill_raw_data.json: prefill_ttft: no such key"},
		{`[1]`, decode, "prefill_raw_data.json: not a JSON object"},
		{`{"prefill_isl":[100,`, decode, "prefill_raw_data.json: not a JSON object"},
		{`{"prefill_isl":["a"],"prefill_ttft":[1]}`, decode, "prefill_isl: got a string, must be numbers"},
		{`{"prefill_isl":[100,200],"prefill_ttft":[10]}`, decode, "prefill_ttft: got 1 values, must be 2"},
		{`{"prefill_isl":[],"prefill_ttft":[]}`, decode, "prefill_isl: holds no value"},
		{`{"prefill_isl":[1,2],"prefill_ttft":[0,0]}`, decode, "prefill times do not rise"},
		{`{"prefill_isl":[1,2],"prefill_ttft":[9,3]}`, decode, "prefill times do not rise"},
		{`{"prefill_isl":[100],"prefill_ttft":[10]}`, decode, "prefill_isl: must rise"},
		{`{"prefill_isl":[1e300],"prefill_ttft":[10]}`, decode, "prefill_isl: got 1e+300 at index 0, must be finite"},
		{prefill, strings.Replace(decode, `"max_kv_tokens":10000`, `"max_kv_tokens":[]`, 1), "max_kv_tokens: got a array"},
		{prefill, strings.Replace(decode, `"z_itl":[5,9]`, `"z_itl":[9,5]`, 1), "decode steps do not rise"},
		{prefill, strings.Replace(decode, `"z_itl":[5,9]`, `"z_itl":[9]`, 1), "z_itl: got 1 values, must be 2"},
		{prefill, strings.Replace(decode, `"x_kv_usage":[0.1,0.5]`, `"x_kv_usage":[0,0]`, 1), "decode_active_kv_tokens: must rise"},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{"prefill_raw_data.json": c.prefill, "decode_raw_data.json": c.decode} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := profiledata.Load(dir)
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

func TestWrittenTablesReadBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.npz")
	if err := os.WriteFile(path, packed(t, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := profiledata.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := goodTable(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// FuzzLoad reads files of any content: no panic, no memory beyond the limits, one line of error, and a model whose
// answers are times.
func FuzzLoad(f *testing.F) {
	good := packed(f, nil)
	f.Add(good)
	f.Add(good[:len(good)-10])
	f.Add(packed(f, map[string]string{"decode_itl": npy("'<f8'", "(3, 2)", "True", 1, 2, 3, 4, 5, 6)}))
	f.Add(packed(f, map[string]string{"prefill_isl": npy("'|O'", "(2,)", "False", 1)}))
	f.Add(packed(f, map[string]string{"prefill_isl": npy("'<f8'", "(99999999,)", "False", 1)}))
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := profiledata.LoadBytes(data)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
			return
		}
		for _, n := range []int{1, 100, 1 << 40} {
			if ms := g.Prefill(1, n, 0); !(ms >= 0) || math.IsInf(ms, 0) {
				t.Errorf("prefill of %d tokens takes %v ms", n, ms)
			}
			if ms := g.Decode(1, n, n, 0); !(ms >= 1) || math.IsInf(ms, 0) {
				t.Errorf("decode at %d tokens takes %v ms", n, ms)
			}
		}
	})
}

// FuzzArray reads arrays without the archive around them, whose checksums hide most changes.
func FuzzArray(f *testing.F) {
	f.Add([]byte(npy("'<f8'", "(2,)", "False", 1, 2)))
	f.Add([]byte(npy("'>i4'", "(2, 1)", "True", 1)))
	f.Add([]byte("\x93NUMPY\x02\x00\xff\xff\xff\xff{"))
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := profiledata.ReadNPY(bytes.NewReader(data))
		if err == nil && n > len(data) {
			t.Errorf("%d values from %d bytes", n, len(data))
		}
	})
}
