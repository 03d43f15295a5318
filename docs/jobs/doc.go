// Package jobs holds pages about what people do at the screen. Its tests follow the pages with the real program and write
// their pictures.
package jobs
