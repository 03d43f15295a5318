package calibratecmd

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"mockbench/profiles"
	"mockbench/profiles/calibration"
)

// Limits of a file of measurements.
const (
	mostRows   = 100_000
	mostTokens = 1e12
	mostMS     = 1e9
)

// columns are the known columns and other names of them.
var columns = map[string]string{
	"isl": "isl", "input_tokens": "isl", "prompt_tokens": "isl",
	"batch": "batch", "batch_size": "batch", "concurrency": "batch",
	"osl": "osl", "output_tokens": "osl", "context": "context",
	"ttft_ms": "ttft_ms", "ttft": "ttft_ms", "itl_ms": "itl_ms", "itl": "itl_ms", "tpot_ms": "itl_ms", "tpot": "itl_ms",
}

// readCSV reads measurements. ignored are columns without a meaning.
func readCSV(path string) (samples []calibration.Sample, ignored []string, err error) {
	data, err := profiles.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	r := csv.NewReader(bytes.NewReader(data))
	r.Comment, r.TrimLeadingSpace, r.ReuseRecord = '#', true, true
	head, err := r.Read()
	if err != nil {
		return nil, nil, badCSV(path, err)
	}
	names, ignored, err := header(head)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return samples, ignored, nil
		}
		if err != nil {
			return nil, nil, badCSV(path, err)
		}
		line, _ := r.FieldPos(0)
		s, err := sampleOf(names, row)
		if err != nil {
			return nil, nil, fmt.Errorf("%s:%d: %w", path, line, err)
		}
		if samples = append(samples, s); len(samples) > mostRows {
			return nil, nil, fmt.Errorf("%s:%d: more than %d rows", path, line, mostRows)
		}
	}
}

func badCSV(path string, err error) error {
	var syntax *csv.ParseError
	switch {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%s: is empty, its first line must name the columns", path)
	case errors.As(err, &syntax):
		return fmt.Errorf("%s:%d: %w", path, syntax.Line, syntax.Err)
	}
	return err
}

// header returns what each column means, "" for nothing.
func header(head []string) (names, ignored []string, err error) {
	seen := map[string]bool{}
	for i, word := range head {
		if i == 0 {
			word = strings.TrimPrefix(word, "\ufeff") // what some spreadsheets put in front
		}
		name := columns[strings.ToLower(strings.TrimSpace(word))]
		if name == "" {
			ignored = append(ignored, word)
		} else if seen[name] {
			return nil, nil, fmt.Errorf("column %s: there are two of it", name)
		}
		seen[name] = true
		names = append(names, name)
	}
	for _, need := range []string{"isl", "ttft_ms", "itl_ms"} {
		if !seen[need] {
			return nil, nil, fmt.Errorf("no column %s, known are isl, batch, context, osl, ttft_ms, itl_ms", need)
		}
	}
	return names, ignored, nil
}

// sampleOf reads one row.
func sampleOf(names, row []string) (s calibration.Sample, err error) {
	s.Batch = 1
	osl := 0.0
	for i, text := range row {
		text = strings.TrimSpace(text)
		if names[i] == "" || text == "" && names[i] != "isl" {
			continue
		}
		x, err := number(names[i], text)
		if err != nil {
			return s, err
		}
		switch names[i] {
		case "batch":
			s.Batch = int(x)
		case "isl":
			s.ISL = x
		case "osl":
			osl = x
		case "context":
			s.Context = x
		case "ttft_ms":
			s.TTFTMS = x
		case "itl_ms":
			s.ITLMS = x
		}
	}
	if s.Context == 0 {
		s.Context = s.ISL + osl/2
	}
	return s, nil
}

// number reads a cell.
func number(column, text string) (float64, error) {
	low, high := 0.0, float64(mostTokens)
	switch column {
	case "batch":
		low, high = 1, 1<<20
	case "isl", "context":
		low = 1
	case "ttft_ms", "itl_ms":
		low, high = 1e-6, mostMS
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x >= low && x <= high) {
		return 0, fmt.Errorf("column %s: got %q, must be a number from %g to %g", column, text, low, high)
	}
	if column == "batch" && x != math.Trunc(x) {
		return 0, fmt.Errorf("column %s: got %q, must be a whole number", column, text)
	}
	return x, nil
}

// writeCSV writes measurements in the form that readCSV reads.
func writeCSV(w io.Writer, samples []calibration.Sample) error {
	c := csv.NewWriter(w)
	if err := c.Write([]string{"isl", "batch", "context", "ttft_ms", "itl_ms"}); err != nil {
		return err
	}
	for _, s := range samples {
		cell := func(x float64) string {
			if x == 0 {
				return ""
			}
			return strconv.FormatFloat(x, 'f', -1, 64)
		}
		row := []string{cell(s.ISL), strconv.Itoa(s.Batch), cell(s.Context), cell(s.TTFTMS), cell(s.ITLMS)}
		if err := c.Write(row); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}
