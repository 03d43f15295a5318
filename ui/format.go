package ui

import (
	"fmt"
	"math"
	"strconv"

	"mockbench/engine"
)

// nothing stands for a figure without data.
const nothing = "--"

// number returns an integer with commas between thousands.
func number[T ~int | ~uint64 | ~int64 | ~int32](n T) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// decimals returns a number with d decimals.
func decimals(x float64, d int) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nothing
	}
	return strconv.FormatFloat(x, 'f', d, 64)
}

// whole returns a rate or count without decimals, with commas.
func whole(x float64) string {
	if math.IsNaN(x) || math.Abs(x) > 1e15 {
		return nothing
	}
	return number(int64(math.Round(x)))
}

// percent returns a share as a percentage with d decimals.
func percent(share float64, d int) string {
	if s := decimals(share*100, d); s != nothing {
		return s + "%"
	}
	return nothing
}

// span returns milliseconds with a unit that keeps it short.
func span(ms float64) string {
	switch {
	case math.IsNaN(ms) || math.IsInf(ms, 0):
		return nothing
	case ms < 9.995:
		return decimals(ms, 1) + "ms"
	case ms < 999.5:
		return decimals(ms, 0) + "ms"
	case ms < 9995:
		return decimals(ms/1000, 2) + "s"
	case ms < 100e3:
		return decimals(ms/1000, 1) + "s"
	case ms < 6000e3:
		return decimals(ms/60e3, 0) + "min"
	}
	return decimals(ms/3600e3, 1) + "h"
}

// clockText returns simulated time as hours, minutes and seconds.
func clockText(t engine.Time) string {
	s := int64(max(t, 0) / 1000)
	return fmt.Sprintf("%02d:%02d:%02d", s/3600, s/60%60, s%60)
}

// speedText returns a speed as it stands in the header.
func speedText(x float64) string {
	if x >= 10 {
		return "x" + decimals(x, 0)
	}
	if x < 1 && x > 0 {
		return "x" + strconv.FormatFloat(x, 'g', 3, 64)
	}
	return "x" + decimals(x, 1)
}

// plural returns "1 stream", "2 streams".
func plural[T ~int | ~uint64 | ~int32](n T, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return number(n) + " " + one + "s"
}

// hash returns a block hash in groups of four hexadecimal digits.
func hash(h uint64) string {
	s := fmt.Sprintf("%016x", h)
	return s[:4] + " " + s[4:8] + " " + s[8:12] + " " + s[12:]
}
