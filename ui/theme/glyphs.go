package theme

// Glyphs are the characters of bars, charts and frames, each one column wide.
type Glyphs struct {
	Levels     []rune // rising heights of a spark or histogram; the first is nothing
	Full, Rest rune   // used and unused part of a bar
	H, V       rune   // frame lines
	NW, NE     rune   // frame corners
	SW, SE     rune
	Up, Down   rune // arrows of a figure that has risen or fallen
}

var (
	blocks = Glyphs{Levels: []rune(" ▁▂▃▄▅▆▇█"), Full: '█', Rest: '─', H: '─', V: '│', NW: '┌', NE: '┐', SW: '└', SE: '┘', Up: '↑', Down: '↓'}
	ascii  = Glyphs{Levels: []rune(" .:-=+*#@"), Full: '#', Rest: '.', H: '-', V: '|', NW: '+', NE: '+', SW: '+', SE: '+', Up: '^', Down: 'v'}
)
