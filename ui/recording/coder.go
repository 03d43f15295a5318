package recording

import (
	"encoding/binary"
	"errors"
	"math"

	"mockbench/engine"
)

// coder writes values to a buffer or reads them from it. Each type has one function that names its fields in the order
// of the format, for both ways. Writing leaves the values alone: workers may be reading them.
type coder struct {
	reading bool
	data    []byte // written so far, or what is left to read
	err     error  // everything after it reads as zero
	spare   int    // blocks that may still be unpacked

	last   engine.Time // the time before, which the next one is written relative to
	labels labels
	shots  map[place]*shape
	items  map[place]map[string]position
}

// place is one rank of the fleet.
type place struct{ worker, rank int }

// errFormat is the error of data that no writer has made.
var errFormat = errors.New("the data does not follow the format")

func newCoder(reading bool) *coder {
	c := &coder{reading: reading}
	c.forget()
	return c
}

// forget makes what comes next independent of what came before.
func (c *coder) forget() {
	c.last, c.labels = 0, labels{number: map[string]int{}}
	c.shots, c.items = map[place]*shape{}, map[place]map[string]position{}
}

func (c *coder) fail() {
	if c.err == nil {
		c.err = errFormat
	}
	if c.reading {
		c.data = nil
	}
}

// take reads n bytes; fewer are an error.
func (c *coder) take(n int) []byte {
	if n < 0 || n > len(c.data) {
		c.fail()
		return nil
	}
	b := c.data[:n]
	c.data = c.data[n:]
	return b
}

// uvarint is an unsigned number in groups of seven bits, the lowest first.
func (c *coder) uvarint(v *uint64) {
	if !c.reading {
		c.data = binary.AppendUvarint(c.data, *v)
		return
	}
	x, n := binary.Uvarint(c.data)
	if n <= 0 {
		c.fail()
		x, n = 0, 0
	}
	*v, c.data = x, c.data[n:]
}

type integer interface {
	~int | ~int32 | ~int64 | ~uint8 | ~int8 | ~uint64
}

// num is an integer, its sign in the lowest bit.
func num[T integer](c *coder, v *T) {
	x := uint64(int64(*v)<<1) ^ uint64(int64(*v)>>63)
	c.uvarint(&x)
	if c.reading {
		y := int64(x>>1) ^ -int64(x&1)
		if *v = T(y); int64(*v) != y {
			c.fail()
			*v = 0
		}
	}
}

// count is an integer that is not negative.
func count[T integer](c *coder, v *T) {
	if num(c, v); *v < 0 {
		c.fail()
		set(c, v, 0)
	}
}

// set gives a value that is read.
func set[T any](c *coder, v *T, x T) {
	if c.reading {
		*v = x
	}
}

// small is an integer of a type with few values, below limit.
func small[T ~uint8](c *coder, v *T, limit int) {
	if num(c, v); int(*v) >= limit {
		c.fail()
		set(c, v, 0)
	}
}

func (c *coder) bool(v *bool) {
	var x uint8
	if *v {
		x = 1
	}
	small(c, &x, 2)
	set(c, v, x == 1)
}

// hash is eight bytes, the lowest first.
func (c *coder) hash(v *uint64) {
	if !c.reading {
		c.data = binary.LittleEndian.AppendUint64(c.data, *v)
		return
	}
	*v = 0
	if b := c.take(8); b != nil {
		*v = binary.LittleEndian.Uint64(b)
	}
}

func (c *coder) float(v *float64) {
	bits := math.Float64bits(*v)
	c.hash(&bits)
	set(c, v, math.Float64frombits(bits))
}

// time is a time whose bits are told by what differs from those of the time before, so that equal times take one byte.
func (c *coder) time(v *engine.Time) {
	last := math.Float64bits(float64(c.last))
	bits := math.Float64bits(float64(*v)) ^ last
	c.uvarint(&bits)
	c.last = engine.Time(math.Float64frombits(bits ^ last))
	set(c, v, c.last)
}

func (c *coder) string(v *string) {
	n := len(*v)
	num(c, &n)
	if c.reading {
		*v = string(c.take(n))
		return
	}
	c.data = append(c.data, *v...)
}

func (c *coder) raw(v *[]byte) {
	text := string(*v)
	c.string(&text)
	if c.reading {
		if *v = nil; text != "" {
			*v = []byte(text)
		}
	}
}

// list is a number of elements and the elements. An element takes at least one byte, so that what is read bounds the
// length.
func list[T any](c *coder, v *[]T, each func(c *coder, v *T)) {
	n := len(*v)
	num(c, &n)
	if !c.reading {
		for i := range *v {
			each(c, &(*v)[i])
		}
		return
	}
	if *v = nil; n < 0 || n > len(c.data) {
		c.fail()
		return
	}
	for range n {
		var x T
		if each(c, &x); c.err != nil {
			return
		}
		*v = append(*v, x)
	}
}

// optional is whether there is a value, and the value.
func optional[T any](c *coder, v **T, each func(c *coder, v *T)) {
	there := *v != nil
	c.bool(&there)
	if c.reading {
		if *v = nil; there {
			*v = new(T)
		}
	}
	if there {
		each(c, *v)
	}
}

func str(c *coder, v *string) { c.string(v) }

// labels number the names of requests, so that each is written once.
type labels struct {
	number map[string]int
	names  []string
}

// label is the number of a name, which it returns, and the name itself the first time.
func (c *coder) label(v *string) (n int) {
	l, known := &c.labels, false
	if !c.reading {
		if n, known = l.number[*v]; !known {
			n = len(l.names)
		}
	}
	num(c, &n)
	switch {
	case n >= 0 && n < len(l.names):
		set(c, v, l.names[n])
	case n == len(l.names):
		c.string(v)
		l.number[*v] = n
		l.names = append(l.names, *v)
	default:
		c.fail()
		set(c, v, "")
	}
	return n
}
