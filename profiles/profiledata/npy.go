package profiledata

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Limits of an array. A table of 1000 x 1000 values fits.
const (
	mostArrayBytes  = 16 << 20
	mostHeaderBytes = 64 << 10
)

var errTruncated = errors.New("the data ends too early")

// array is a numeric array of an NPY file, in row-major order.
type array struct {
	kind   string // as in the file, for example <f8
	shape  []int
	values []float64
}

const npyMagic = "\x93NUMPY"

// npyHeader matches what NumPy writes. A structured type is a list in place of the text, so that it does not match.
var npyHeader = regexp.MustCompile(
	`^\{'descr': '([^']*)', 'fortran_order': (True|False), 'shape': \(([0-9, ]*)\),? *\}\s*$`)

// readNPY reads one array of whole numbers or floats. What a header claims is checked before memory is taken for it.
// Python objects are refused: they are programs in disguise.
func readNPY(r io.Reader) (*array, error) {
	text, err := npyHeaderText(r)
	if err != nil {
		return nil, err
	}
	m := npyHeader.FindStringSubmatch(text)
	if m == nil {
		return nil, errors.New("not a plain numeric array")
	}
	a := &array{kind: m[1]}
	decode, size, err := numberOf(a.kind)
	if err != nil {
		return nil, err
	}
	count := 1
	for _, word := range strings.FieldsFunc(m[3], func(c rune) bool { return c == ',' || c == ' ' }) {
		n, err := strconv.Atoi(word)
		if err != nil || n > mostArrayBytes || count*n*size > mostArrayBytes {
			return nil, fmt.Errorf("shape (%s) is larger than %d MiB, the most an array may have", m[3], mostArrayBytes>>20)
		}
		count *= n
		a.shape = append(a.shape, n)
	}
	data := make([]byte, count*size)
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, truncated(err)
	}
	if n, _ := r.Read(make([]byte, 1)); n > 0 {
		return nil, errors.New("data follows after the last value")
	}
	a.values = make([]float64, count)
	for i := range a.values {
		a.values[i] = decode(data[i*size:])
	}
	if m[2] == "True" && len(a.shape) == 2 {
		a.values = rowMajor(a.values, a.shape[0], a.shape[1])
	}
	return a, nil
}

// npyHeaderText reads up to the end of the header.
func npyHeaderText(r io.Reader) (string, error) {
	start := make([]byte, len(npyMagic)+2)
	if _, err := io.ReadFull(r, start); err != nil {
		return "", truncated(err)
	}
	if !bytes.HasPrefix(start, []byte(npyMagic)) {
		return "", errors.New("not an array in NPY form")
	}
	var length uint32
	switch major := start[len(npyMagic)]; major {
	case 1:
		var short uint16
		if err := binary.Read(r, binary.LittleEndian, &short); err != nil {
			return "", truncated(err)
		}
		length = uint32(short)
	case 2, 3:
		if err := binary.Read(r, binary.LittleEndian, &length); err != nil {
			return "", truncated(err)
		}
	default:
		return "", fmt.Errorf("version %d of the NPY form is not known", major)
	}
	if length > mostHeaderBytes {
		return "", fmt.Errorf("a header of %d bytes, must be at most %d", length, mostHeaderBytes)
	}
	text := make([]byte, length)
	_, err := io.ReadFull(r, text)
	return string(text), truncated(err)
}

// truncated gives the end of the data a clear name.
func truncated(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errTruncated
	}
	return err
}

// numberOf returns how a number of a type is read, and its bytes.
func numberOf(kind string) (decode func([]byte) float64, size int, err error) {
	var order binary.ByteOrder = binary.LittleEndian
	if strings.HasPrefix(kind, ">") {
		order = binary.BigEndian
	}
	switch strings.TrimLeft(kind, "<>|=") {
	case "f8":
		return func(b []byte) float64 { return math.Float64frombits(order.Uint64(b)) }, 8, nil
	case "f4":
		return func(b []byte) float64 { return float64(math.Float32frombits(order.Uint32(b))) }, 4, nil
	case "i8":
		return func(b []byte) float64 { return float64(int64(order.Uint64(b))) }, 8, nil
	case "i4":
		return func(b []byte) float64 { return float64(int32(order.Uint32(b))) }, 4, nil
	case "i2":
		return func(b []byte) float64 { return float64(int16(order.Uint16(b))) }, 2, nil
	case "i1":
		return func(b []byte) float64 { return float64(int8(b[0])) }, 1, nil
	case "u8":
		return func(b []byte) float64 { return float64(order.Uint64(b)) }, 8, nil
	case "u4":
		return func(b []byte) float64 { return float64(order.Uint32(b)) }, 4, nil
	case "u2":
		return func(b []byte) float64 { return float64(order.Uint16(b)) }, 2, nil
	case "u1":
		return func(b []byte) float64 { return float64(b[0]) }, 1, nil
	case "O":
		return nil, 0, errors.New("holds Python objects, which are not read, must be numbers")
	}
	return nil, 0, fmt.Errorf("holds values of type %q, must be numbers", kind)
}

// rowMajor turns column-major data around.
func rowMajor(v []float64, rows, columns int) []float64 {
	out := make([]float64, len(v))
	for i := range rows {
		for j := range columns {
			out[i*columns+j] = v[j*rows+i]
		}
	}
	return out
}

// writeNPY writes an array of float64 with a header padded as NumPy does.
func writeNPY(w io.Writer, values []float64, shape ...int) error {
	const align, fixed = 64, len(npyMagic) + 4
	dims := make([]string, len(shape))
	for i, n := range shape {
		dims[i] = strconv.Itoa(n) + ","
	}
	size := strings.Join(dims, " ")
	if len(shape) > 1 {
		size = strings.TrimSuffix(size, ",")
	}
	text := fmt.Sprintf("{'descr': '<f8', 'fortran_order': False, 'shape': (%s), }", size)
	text += strings.Repeat(" ", align-1-(fixed+len(text))%align) + "\n"
	head := append([]byte(npyMagic), 1, 0)
	head = binary.LittleEndian.AppendUint16(head, uint16(len(text)))
	if _, err := w.Write(append(head, text...)); err != nil {
		return err
	}
	return binary.Write(w, binary.LittleEndian, values)
}
