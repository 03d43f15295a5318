package uitest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"

	"mockbench/ui"
	"mockbench/ui/theme"
)

// Screen is a screen without a program: messages are handled one after the other, commands at once, time moves when
// the test says so. Two screens on equal fleets that were told the same show the same.
type Screen struct {
	Model *ui.Model
	Fleet *Fleet
	Quit  bool // the screen asked to end
}

// NewScreen returns a screen of w x h cells on a fleet.
func NewScreen(f *Fleet, o ui.Options, th theme.Theme, w, h int) *Screen {
	s := &Screen{Model: ui.New(o, th), Fleet: f}
	s.run(func() tea.Msg { return tea.WindowSizeMsg{Width: w, Height: h} })
	return s
}

// Send handles messages and everything that follows from them.
func (s *Screen) Send(messages ...tea.Msg) {
	for _, msg := range messages {
		switch msg := msg.(type) {
		case nil:
		case tea.QuitMsg:
			s.Quit = true
		case tea.BatchMsg:
			for _, c := range msg {
				s.run(c)
			}
		default:
			_, c := s.Model.Update(msg)
			s.run(c)
		}
	}
}

func (s *Screen) run(c tea.Cmd) {
	if c != nil {
		s.Send(c())
	}
}

// Run lets frames of a tenth of a second go by.
func (s *Screen) Run(frames int) {
	for range frames {
		s.Fleet.Run(1)
		s.run(s.Model.Tick())
		s.Model.View()
	}
}

// Press handles keys, named as in the key table.
func (s *Screen) Press(names ...string) {
	for _, n := range names {
		s.Send(Key(n))
	}
}

// Key returns the message of a key named as in the key table.
func Key(name string) tea.KeyMsg {
	for t := tea.KeyType(-100); t < 200; t++ {
		if k := (tea.KeyMsg{Type: t}); t != tea.KeyRunes && k.String() == name && name != "" {
			return k
		}
	}
	return tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(name)}
}

// Text returns what is shown, one line a row, without trailing blanks. The styles stand in it as escape sequences.
func (s *Screen) Text() string { return s.Model.View() }

// Golden compares text with a file of testdata. With UPDATE_GOLDEN set the file is written.
func Golden(t testing.TB, name, text string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	text += "\n"
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if text == string(want) {
		return
	}
	got, old := strings.Split(text, "\n"), strings.Split(string(want), "\n")
	for i := range max(len(got), len(old)) {
		if i >= len(got) || i >= len(old) || got[i] != old[i] {
			t.Fatalf("%s differs from line %d on:\n%s", file, i+1, text)
		}
	}
}
