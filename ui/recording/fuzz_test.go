package recording

import (
	"bytes"
	"testing"

	"github.com/klauspost/compress/zstd"

	"mockbench/ui"
	"mockbench/ui/theme"
)

// Any file is refused or read up to its first fault.
func FuzzRead(f *testing.F) {
	data := sample(f)
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		if r, err := Read(bytes.NewReader(data), int64(len(data))); err == nil {
			collect(r)
		}
	})
}

// Whatever the checksums vouch for, it is refused or the screen can show it.
func FuzzMoment(f *testing.F) {
	data := sample(f)
	r, err := Read(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range r.segments {
		for _, b := range s.blocks {
			plain, err := r.zip.DecodeAll(data[b.payload:b.payload+int64(b.length)], nil)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(plain, uint8(b.moments))
		}
	}
	zip, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		f.Fatal(err)
	}
	th := theme.New(theme.NoColor, false, false)
	f.Fuzz(func(t *testing.T, plain []byte, moments uint8) {
		file, err := appendPreamble(nil, Header{Workers: []string{"w0", "w1"}, Routing: true, Window: true, Sides: true})
		if err != nil {
			t.Fatal(err)
		}
		head := blockHead{last: maxTime, moments: max(uint32(moments), 1), flags: flagAlone}
		file = appendBlock(file, head, zip.EncodeAll(plain, nil))
		r, err := Read(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			t.Fatal(err)
		}
		list, err := collect(r)
		if err != nil {
			return
		}
		last := list[len(list)-1].At
		for _, panel := range ui.Panels() {
			if _, err := ui.Show(ui.Options{Tape: r}, th, panel, last, 80, 24); err != nil {
				t.Fatal(err)
			}
		}
	})
}
