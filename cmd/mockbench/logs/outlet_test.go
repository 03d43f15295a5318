package logs

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

func TestAStalledReaderStopsNobody(t *testing.T) {
	r, w := io.Pipe()
	o := NewOutlet(w)
	const lines = 3 * waiting
	for i := range lines { // nobody reads
		fmt.Fprintf(o, "line %d\n", i)
	}
	o.Flush(time.Millisecond)
	read := make(chan string)
	go func() {
		text, _ := io.ReadAll(r)
		read <- string(text)
	}()
	o.Flush(time.Minute)
	fmt.Fprintln(o, "last")
	o.Flush(time.Minute)
	w.Close()
	text := <-read
	var lost int
	for line := range strings.Lines(text) {
		if strings.HasSuffix(line, " lines dropped, nobody read them\n") {
			var n int
			fmt.Sscan(line, &n)
			lost += n
		}
	}
	if written := strings.Count(text, "line "); written+lost != lines || lost < lines-waiting-2 || !strings.HasPrefix(text, "line 0\nline 1\n") || !strings.HasSuffix(text, "last\n") {
		t.Errorf("%d lines written, %d said to be lost of %d", written, lost, lines)
	}
}
