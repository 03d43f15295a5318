package theme

import "mockbench/ui/grid"

// pair is a background and the colour of the letter on it.
type pair struct{ bg, ink int16 }

// colours are the indexes of one palette. Cells and inks are in the order of the block states; the cells were chosen
// for the largest smallest distance between any two in normal, protan, deutan and tritan vision.
type colours struct {
	cells      [States]pair
	inks       [States]int16
	dim, frame int16
	alarm      pair
	paused     pair
}

var (
	dark256 = colours{
		cells: [States]pair{{235, 240}, {214, 94}, {229, 136}, {25, 67}, {117, 31}, {204, 88}},
		inks:  [States]int16{240, 214, 229, 67, 117, 204},
		dim:   247, frame: 245, alarm: pair{204, 16}, paused: pair{229, 16},
	}
	light256 = colours{
		cells: [States]pair{{255, 248}, {214, 130}, {94, 179}, {26, 117}, {36, 23}, {126, 219}},
		inks:  [States]int16{248, 130, 94, 26, 29, 126},
		dim:   241, frame: 243, alarm: pair{126, 231}, paused: pair{94, 231},
	}
	dark16 = colours{
		cells: [States]pair{{grid.Default, 7}, {3, 0}, {15, 0}, {4, 7}, {6, 0}, {5, 15}},
		inks:  [States]int16{7, 3, 15, 12, 6, 13},
		dim:   grid.Default, frame: grid.Default, alarm: pair{5, 15}, paused: pair{3, 0},
	}
	light16 = colours{
		cells: [States]pair{{grid.Default, 0}, {3, 0}, {0, 15}, {12, 15}, {6, 0}, {5, 15}},
		inks:  [States]int16{0, 3, 0, 4, 6, 5},
		dim:   grid.Default, frame: grid.Default, alarm: pair{5, 15}, paused: pair{3, 0},
	}
)

// palette returns the colours for a terminal, nil if it shows none.
func palette(c Colors, light bool) *colours {
	switch {
	case c >= Colors256 && light:
		return &light256
	case c >= Colors256:
		return &dark256
	case c >= Colors16 && light:
		return &light16
	case c >= Colors16:
		return &dark16
	}
	return nil
}

func (c *colours) apply(looks []grid.Look) {
	for i, p := range c.cells {
		looks[int(CellFree)+i] = grid.Look{FG: p.ink, BG: p.bg}
		looks[int(InkFree)+i] = grid.Look{FG: c.inks[i], BG: grid.Default}
	}
	looks[Dim].FG = c.dim
	looks[Frame].FG = c.frame
	looks[Alarm] = grid.Look{FG: c.alarm.ink, BG: c.alarm.bg, Bold: true}
	looks[Paused] = grid.Look{FG: c.paused.ink, BG: c.paused.bg}
}
