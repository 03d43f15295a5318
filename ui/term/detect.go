// Package term is the screen's side of the terminal: what it can show, a writer that sends it only changed cells, and
// the one owner of bringing it back to the state in which the program found it.
package term

import (
	"strings"

	"github.com/charmbracelet/colorprofile"

	"mockbench/ui/theme"
)

// Abilities say what a terminal can show.
type Abilities struct {
	Colors  theme.Colors
	Light   bool // light background
	Unicode bool // block and line glyphs
	Mouse   bool
}

// Env looks up an environment variable, as os.Getenv does.
type Env func(name string) string

// Usable reports whether the environment names a terminal that a screen can be drawn on.
func Usable(env Env) bool {
	t := env("TERM")
	return t != "" && t != "dumb"
}

// Detect finds out what the terminal can show from the environment alone: nothing is asked of the terminal itself.
func Detect(env Env) Abilities {
	console := env("TERM") == "linux"
	return Abilities{
		Colors:  colors(env),
		Light:   light(env("COLORFGBG")),
		Unicode: utf8Locale(env) && !console && Usable(env),
		Mouse:   !console,
	}
}

func colors(env Env) theme.Colors {
	if env("NO_COLOR") != "" || env("CLICOLOR") == "0" {
		return theme.NoColor
	}
	names := []string{"TERM", "COLORTERM", "TERM_PROGRAM", "WT_SESSION", "GOOGLE_CLOUD_SHELL"}
	environ := make([]string, 0, len(names))
	for _, name := range names {
		if v := env(name); v != "" {
			environ = append(environ, name+"="+v)
		}
	}
	switch colorprofile.Env(environ) {
	case colorprofile.TrueColor, colorprofile.ANSI256:
		return theme.Colors256
	case colorprofile.ANSI:
		return theme.Colors16
	}
	return theme.NoColor
}

// light reads the "foreground;background" that some terminals export: 7 and 9 to 15 are light backgrounds.
func light(colorfgbg string) bool {
	bg := colorfgbg[strings.LastIndexByte(colorfgbg, ';')+1:]
	switch bg {
	case "7", "9", "10", "11", "12", "13", "14", "15":
		return true
	}
	return false
}

// utf8Locale reports whether the locale is UTF-8 and of a language in which line and block glyphs are one column wide.
func utf8Locale(env Env) bool {
	locale := env("LC_ALL")
	if locale == "" {
		locale = env("LC_CTYPE")
	}
	if locale == "" {
		locale = env("LANG")
	}
	locale = strings.ToLower(locale)
	for _, language := range []string{"ja", "ko", "zh"} {
		if strings.HasPrefix(locale, language) {
			return false
		}
	}
	return strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8")
}
