package ui

import "mockbench/ui/grid"

// Smallest size the screen is drawn at, and the smallest of the roomy layout.
const (
	minWidth, minHeight     = 80, 24
	roomyWidth, roomyHeight = 120, 36
)

// hostRows is the height of the figures of the host tier with their frame.
const hostRows = 12

// box names a rectangle of the screen.
type box int

const (
	boxHeader box = iota
	boxTabs
	boxBanner
	boxBody
	boxFooter
	boxSlider
	boxWorkers
	boxLatency
	boxMap
	boxHost
	boxCursor
	boxPass
	boxSparks
	boxBatch
	boxTable
	boxList
	boxLog
	boxes
)

// layout is the named rectangles of one size and panel; those a panel does not have are empty.
type layout struct {
	w, h  int
	roomy bool
	rect  [boxes]grid.Rect
}

// tooSmall reports a size at which only a message is shown.
func (l *layout) tooSmall() bool { return l.w < minWidth || l.h < minHeight }

// at returns the innermost box at a cell and the cell relative to it.
func (l *layout) at(x, y int) (b box, cx, cy int, ok bool) {
	for b = boxes - 1; b >= 0; b-- {
		if r := l.rect[b]; b != boxBody && r.Contains(x, y) {
			return b, x - r.X, y - r.Y, true
		}
	}
	return 0, 0, 0, false
}

// shape is what the layout of a panel depends on beside the size.
type shape struct {
	tab    tab
	banner int  // alarm lines
	rows   int  // workers
	host   bool // there is a host tier
	tree   bool // the KV blocks panel shows the prefix tree
	sides  bool // two fleets are compared
	slider bool // a recording is shown
}

// arrange computes the layout of a panel.
func arrange(w, h int, s shape) layout {
	l := layout{w: w, h: h, roomy: w >= roomyWidth && h >= roomyHeight}
	if l.tooSmall() {
		return l
	}
	l.rect[boxHeader] = grid.Rect{X: 0, Y: 0, W: w, H: 1}
	l.rect[boxTabs] = grid.Rect{X: 0, Y: 1, W: w, H: 1}
	l.rect[boxBanner] = grid.Rect{X: 0, Y: 2, W: w, H: s.banner}
	l.rect[boxFooter] = grid.Rect{X: 0, Y: h - 1, W: w, H: 1}
	body := grid.Rect{X: 0, Y: 2 + s.banner, W: w, H: h - 3 - s.banner}
	if s.slider {
		body, l.rect[boxSlider] = rowsOf(body, body.H-1)
	}
	l.rect[boxBody] = body
	switch s.tab {
	case tabOverview:
		l.overview(body, s)
	case tabBlocks:
		if s.tree {
			l.rect[boxTable] = body
		} else {
			l.blocks(body)
		}
	case tabHost:
		if s.host {
			top, rest := rowsOf(body, hostRows)
			l.rect[boxHost] = top
			l.rect[boxSparks], l.rect[boxTable] = rowsOf(rest, 4)
		}
	case tabBatch:
		top := min(body.H-8, 10+(body.H-21)*2/5)
		l.rect[boxBatch], l.rect[boxTable] = rowsOf(body, top)
	case tabRequests:
		l.rect[boxTable], l.rect[boxCursor] = rowsOf(body, body.H-lifeRows)
	case tabEvents:
		if l.roomy {
			l.rect[boxList], l.rect[boxLog] = rowsOf(body, body.H-8)
		} else {
			l.rect[boxList], l.rect[boxLog] = rowsOf(body, body.H-5)
		}
	case tabRouting:
		if s.sides {
			top, rest := rowsOf(body, min(s.rows/2+2, max(body.H-sidesRows-5, 5)))
			l.rect[boxWorkers] = top
			l.rect[boxLatency], l.rect[boxTable] = rowsOf(rest, sidesRows)
			break
		}
		l.rect[boxWorkers], l.rect[boxTable] = rowsOf(body, min(s.rows+3, body.H*2/5))
	default:
		l.rect[boxTable] = body
	}
	return l
}

func (l *layout) overview(body grid.Rect, s shape) {
	rows, sparks := s.rows, 5
	if s.host {
		sparks++
	}
	if !l.roomy {
		workers := min(7, 3+max(rows, 1)+max(0, (body.H-21)/4))
		if rows > 4 {
			workers = min(rows+3, 7+(body.H-21)/3)
		}
		top, rest := rowsOf(body, workers)
		l.rect[boxWorkers] = top
		rest, l.rect[boxSparks] = rowsOf(rest, rest.H-3)
		l.rect[boxMap], rest = rowsOf(rest, rest.H-5)
		l.rect[boxLatency], l.rect[boxPass] = columnsOf(rest, rest.W/2)
		return
	}
	workers := max(9+(body.H-33)/6, min(rows+3, 11+(body.H-33)*3/8))
	left := 72 + (l.w-roomyWidth)*38/80
	top, rest := rowsOf(body, workers)
	rest, l.rect[boxSparks] = rowsOf(rest, rest.H-sparks)
	l.rect[boxWorkers], l.rect[boxLatency] = columnsOf(top, left)
	l.rect[boxMap], l.rect[boxPass] = columnsOf(rest, left)
}

func (l *layout) blocks(body grid.Rect) {
	if l.roomy {
		l.rect[boxMap], l.rect[boxCursor] = columnsOf(body, body.W-30-min(14, (l.w-roomyWidth)/4))
		return
	}
	l.rect[boxMap], l.rect[boxCursor] = rowsOf(body, body.H-2)
}

// rowsOf cuts a rectangle into the upper n rows and the rest.
func rowsOf(r grid.Rect, n int) (upper, lower grid.Rect) {
	n = min(max(n, 0), r.H)
	return grid.Rect{X: r.X, Y: r.Y, W: r.W, H: n}, grid.Rect{X: r.X, Y: r.Y + n, W: r.W, H: r.H - n}
}

// columnsOf cuts a rectangle into the left n columns and the rest.
func columnsOf(r grid.Rect, n int) (left, right grid.Rect) {
	n = min(max(n, 0), r.W)
	return grid.Rect{X: r.X, Y: r.Y, W: n, H: r.H}, grid.Rect{X: r.X + n, Y: r.Y, W: r.W - n, H: r.H}
}
