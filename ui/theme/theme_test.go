package theme

import (
	"math"
	"testing"

	"mockbench/engine"
	"mockbench/ui/grid"
)

type rgb [3]float64 // linear light

// indexed returns the colour of an index of the 256-colour palette from 16 on.
func indexed(i int16) rgb {
	var c [3]float64
	if i >= 232 {
		grey := float64(8 + 10*(int(i)-232))
		c = [3]float64{grey, grey, grey}
	} else {
		steps := [6]float64{0, 95, 135, 175, 215, 255}
		n := int(i) - 16
		c = [3]float64{steps[n/36], steps[n/6%6], steps[n%6]}
	}
	var out rgb
	for k, v := range c {
		v /= 255
		if v <= 0.04045 {
			out[k] = v / 12.92
		} else {
			out[k] = math.Pow((v+0.055)/1.055, 2.4)
		}
	}
	return out
}

type matrix [3][3]float64

func (m matrix) of(c rgb) rgb {
	var out rgb
	for i := range 3 {
		v := m[i][0]*c[0] + m[i][1]*c[1] + m[i][2]*c[2]
		out[i] = min(max(v, 0), 1)
	}
	return out
}

// Kinds of vision: matrices of Machado, Oliveira and Fernandes (2009) at full severity.
var visions = map[string]matrix{
	"normal": {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
	"protan": {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
	"deutan": {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
	"tritan": {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}},
}

// lab converts to CIE L*a*b* under D65.
func lab(c rgb) [3]float64 {
	xyz := matrix{{0.4124564, 0.3575761, 0.1804375}, {0.2126729, 0.7151522, 0.0721750}, {0.0193339, 0.1191920, 0.9503041}}
	white := [3]float64{0.95047, 1, 1.08883}
	var f [3]float64
	for i := range 3 {
		v := (xyz[i][0]*c[0] + xyz[i][1]*c[1] + xyz[i][2]*c[2]) / white[i]
		if v > 216.0/24389 {
			f[i] = math.Cbrt(v)
		} else {
			f[i] = (24389.0/27*v + 16) / 116
		}
	}
	return [3]float64{116*f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])}
}

// distance is CIE76.
func distance(a, b rgb) float64 {
	x, y := lab(a), lab(b)
	return math.Sqrt((x[0]-y[0])*(x[0]-y[0]) + (x[1]-y[1])*(x[1]-y[1]) + (x[2]-y[2])*(x[2]-y[2]))
}

func TestStatesDifferInEveryVision(t *testing.T) {
	const enough = 25
	for name, p := range map[string]*colours{"dark": &dark256, "light": &light256} {
		for vision, m := range visions {
			for i := range States {
				for j := range i {
					d := distance(m.of(indexed(p.cells[i].bg)), m.of(indexed(p.cells[j].bg)))
					if d < enough {
						t.Errorf("%s, %s: %s and %s are only %.1f apart", name, vision, Names[i], Names[j], d)
					}
				}
			}
		}
	}
}

func TestLettersAreDistinctASCII(t *testing.T) {
	seen := map[rune]bool{}
	for s, r := range Letters {
		if r <= ' ' || r > '~' || seen[r] {
			t.Errorf("%s: letter %q", Names[s], r)
		}
		seen[r] = true
	}
}

func TestNoColourMeansNoColour(t *testing.T) {
	for s, l := range New(NoColor, false, false).Looks {
		if l.FG != grid.Default || l.BG != grid.Default {
			t.Errorf("style %d has a colour: %+v", s, l)
		}
	}
}

func TestSixteenColoursStayBelowSixteen(t *testing.T) {
	for _, light := range []bool{false, true} {
		for s, l := range New(Colors16, light, true).Looks {
			if l.FG > 15 || l.BG > 15 {
				t.Errorf("style %d: %+v", s, l)
			}
		}
	}
}

func TestStylesFollowTheStates(t *testing.T) {
	if Cell(engine.BlockFree) != CellFree || Cell(Evicted) != CellEvicted || Ink(engine.BlockHost) != InkHost {
		t.Error("the styles of states are not in the order of the states")
	}
}
