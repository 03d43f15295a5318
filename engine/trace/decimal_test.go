package trace

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

func TestDecimal(t *testing.T) {
	for text, want := range map[string]float64{
		"0": 0, "-0": math.Copysign(0, -1), "12": 12, "-1.5": -1.5, "2e3": 2000, "25E-1": 2.5, "1e+2": 100, "1e999": math.Inf(1), "0e999": 0,
		"1e-400": 0, "123456789012345678901234567890": 123456789012345678901234567890.0, "0.1": 0.1, "5e-324": 5e-324,
		"1." + "000000000000000000000000000000000000": 1, "1e99999999999999999999": math.Inf(1),
		"182.43611524275977": 182.43611524275977, "22.542065133881515": 22.542065133881515,
	} {
		if got := decimal([]byte(text)); math.Abs(got-want) > 1e-15*math.Abs(want) || math.Signbit(got) != math.Signbit(want) {
			t.Errorf("%s is %v, want %v", text, got, want)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 100000 {
		want := r.ExpFloat64() * math.Pow10(r.IntN(600)-300)
		for _, text := range []string{strconv.FormatFloat(want, 'g', -1, 64), strconv.FormatFloat(want, 'f', -1, 64)} {
			if got := decimal([]byte(text)); math.Abs(got-want) > 1e-15*want {
				t.Fatalf("%s is %v", text, got)
			}
		}
	}
}
