package knobs

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"mockbench/engine"
)

// value is one setting in a setup: its text, how it is set from one, and its next and previous step. set returns what
// is allowed instead of a text that is not of the setting's type.
type value struct {
	text func() string
	set  func(text string) (allowed string)
	step func(up bool)
}

// integer is a whole number. Its steps are an eighth of the power of two below it.
func integer(p *int) value {
	return value{
		text: func() string { return strconv.Itoa(*p) },
		set: func(text string) string {
			n, err := strconv.Atoi(digits(text))
			if err != nil {
				return "must be a whole number"
			}
			*p = n
			return ""
		},
		step: func(up bool) { *p = int(nextWhole(uint64(max(*p, 0)), up)) },
	}
}

// Words that stand for 0.
const (
	unlimited = "unlimited"
	none      = "none"
)

// orZero is a setting of which a word says what 0 means; 0 is read too.
func orZero(v value, meaning string) value {
	text, set := v.text, v.set
	v.text = func() string {
		if s := text(); s != "0" {
			return s
		}
		return meaning
	}
	v.set = func(s string) string {
		if s == meaning {
			s = "0"
		}
		allowed := set(s)
		if allowed != "" {
			allowed += " or " + meaning
		}
		return allowed
	}
	return v
}

// doubling is a whole number whose steps are powers of two.
func doubling(p *int) value {
	v := integer(p)
	v.step = func(up bool) {
		if up {
			*p = 1 << bits.Len(uint(*p))
		} else if *p > 1 {
			*p = 1 << (bits.Len(uint(*p-1)) - 1)
		}
	}
	return v
}

// limit is a whole number that may be unlimited.
func limit(p *uint64) value {
	return value{
		text: func() string {
			if *p == engine.Unlimited {
				return unlimited
			}
			return strconv.FormatUint(*p, 10)
		},
		set: func(text string) string {
			if text == unlimited {
				*p = engine.Unlimited
				return ""
			}
			n, err := strconv.ParseUint(digits(text), 10, 64)
			if err != nil {
				return "must be a whole number or " + unlimited
			}
			*p = n
			return ""
		},
		step: func(up bool) {
			if *p != engine.Unlimited {
				*p = nextWhole(*p, up)
			}
		},
	}
}

// number is a real number. Its steps are a tenth of its order of magnitude.
func number(p *float64) value {
	return value{text: func() string { return strconv.FormatFloat(*p, 'g', 6, 64) }, set: setNumber(p), step: func(up bool) {
		x := *p
		if up {
			unit := tenth(x)
			*p = round((math.Floor(x/unit+1e-9) + 1) * unit)
			return
		}
		unit := tenth(x * (1 - 1e-9))
		*p = round(max((math.Ceil(x/unit-1e-9)-1)*unit, 0))
	}}
}

// share is a real number from 0 to 1.
func share(p *float64) value {
	v := number(p)
	v.step = func(up bool) {
		d := -0.05
		if up {
			d = 0.05
		}
		*p = round(min(max(*p+d, 0), 1))
	}
	return v
}

func setNumber(p *float64) func(string) string {
	return func(text string) string {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return "must be a number"
		}
		*p = x
		return ""
	}
}

// tenth returns a tenth of the order of magnitude of x.
func tenth(x float64) float64 {
	if x < 0.1 {
		return 0.01
	}
	return math.Pow(10, math.Floor(math.Log10(x)+1e-9)) / 10
}

// round drops what steps lose in binary.
func round(x float64) float64 {
	y, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 9, 64), 64)
	if err != nil {
		return x
	}
	return y
}

// toggle is a yes or no.
func toggle(p *bool) value {
	return value{
		text: func() string { return strconv.FormatBool(*p) },
		set: func(text string) string {
			switch strings.ToLower(text) {
			case "true", "on", "yes":
				*p = true
			case "false", "off", "no":
				*p = false
			default:
				return "must be true or false"
			}
			return ""
		},
		step: func(bool) { *p = !*p },
	}
}

// word is one of some words.
func word[S ~string](p *S, words ...S) value {
	return value{
		text: func() string { return string(*p) },
		set: func(text string) string {
			if !slices.Contains(words, S(text)) {
				return fmt.Sprintf("must be one of %v", words)
			}
			*p = S(text)
			return ""
		},
		step: func(up bool) {
			i, n := slices.Index(words, *p), len(words)
			if up {
				*p = words[(i+1)%n]
			} else {
				*p = words[(max(i, 0)+n-1)%n]
			}
		},
	}
}

// sentence is any text; it has no steps.
func sentence(p *string) value {
	return value{text: func() string { return strings.TrimSpace(*p) }, set: func(text string) string { *p = text; return "" }, step: func(bool) {}}
}

// nextWhole returns the next multiple of an eighth of the power of two below n.
func nextWhole(n uint64, up bool) uint64 {
	if up {
		unit := max(uint64(1)<<bits.Len64(n)>>4, 1)
		return n/unit*unit + unit
	}
	if n == 0 {
		return 0
	}
	unit := max(uint64(1)<<bits.Len64(n-1)>>4, 1)
	return (n - 1) / unit * unit
}

// digits drops the commas between thousands.
func digits(text string) string { return strings.ReplaceAll(text, ",", "") }
