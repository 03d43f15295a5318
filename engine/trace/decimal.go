package trace

import "math"

// maxPower is the highest power of ten that a double holds.
const maxPower = 308

// decimal returns the value of a number of the grammar of JSON: its digits as a whole number, times or over a power of ten.
// That is up to one unit in the last place off the closest double, and on purpose: the reference reads traces so, and which
// of two events at almost the same time comes first may depend on it. Too large numbers give an infinity.
func decimal(text []byte) float64 {
	var digits uint64
	exponent, i, full := 0, 0, false
	negative := text[0] == '-'
	if negative {
		i++
	}
	fraction := false
	for ; i < len(text) && text[i]|0x20 != 'e'; i++ {
		if text[i] == '.' {
			fraction = true
			continue
		}
		d := uint64(text[i] - '0')
		full = full || digits > (math.MaxUint64-d)/10
		switch {
		case full && !fraction:
			exponent++
		case full:
		default:
			digits = digits*10 + d
			if fraction {
				exponent--
			}
		}
	}
	x := scale(float64(digits), exponent+power(text[min(i+1, len(text)):]))
	if negative {
		return -x
	}
	return x
}

// power reads the exponent of a number, cut to what makes any difference.
func power(text []byte) int {
	n, sign := 0, 1
	for _, c := range text {
		switch c {
		case '-':
			sign = -1
		case '+':
		default:
			n = min(n*10+int(c-'0'), 1<<20)
		}
	}
	return sign * n
}

// scale returns x times ten to the power of n.
func scale(x float64, n int) float64 {
	for ; n < -maxPower && x != 0; n += maxPower {
		x /= 1e308
	}
	switch {
	case x == 0:
		return 0
	case n > maxPower:
		return math.Inf(1)
	case n >= 0:
		return x * math.Pow10(n)
	}
	return x / math.Pow10(-n)
}
