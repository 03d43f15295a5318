package requestplane

import (
	"bufio"
	"bytes"
	"io"
	"testing"
)

// FuzzReadFrame asserts that bytes on the request port never end the process, and that what is read is what was there.
func FuzzReadFrame(f *testing.F) {
	f.Add(appendFrame(nil, []byte("p"), []byte("{}"), AppendMessage(nil, []byte(`{"id":"x"}`), []byte{0xc0})))
	f.Add([]byte("\x00\x01p\x00\x00\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		frame, err := ReadFrame(bufio.NewReader(bytes.NewReader(b)), 1<<20)
		if err != nil {
			return
		}
		again := appendFrame(nil, []byte(frame.Path), frame.Headers, frame.Payload)
		if !bytes.HasPrefix(b, again) {
			t.Errorf("read %q out of %q", again, b)
		}
		_ = frame.sentAt()
		if header, _, err := SplitMessage(frame.Payload); err == nil {
			if c, err := ParseControl(header); err == nil && c.Home == nil {
				t.Errorf("%q is accepted without a return address", header)
			}
		}
	})
}

// FuzzReadMessage asserts the same of what frontends write on answer connections.
func FuzzReadMessage(f *testing.F) {
	f.Add(AppendMessage(nil, []byte(`"kill"`), nil))
	f.Add(bytes.Repeat([]byte{0x80}, headSize))
	f.Add(appendHead(nil, 1, 0)) // and nothing of the header
	f.Fuzz(func(t *testing.T, b []byte) {
		const limit = 1 << 16
		header, body, err := ReadMessage(bytes.NewReader(b), limit)
		h, n, whole := SplitMessage(b)
		if err == nil && (whole != nil || !bytes.Equal(h, header) || !bytes.Equal(n, body)) {
			t.Errorf("read %q, %q and split %q, %q, %v", header, body, h, n, whole)
		}
		if err != nil && whole == nil && len(h)+len(n) <= limit {
			t.Errorf("a whole message was not read: %v", err)
		}
		if err == io.EOF && len(b) > 0 {
			t.Error("a cut message looks like the end of the connection")
		}
	})
}
