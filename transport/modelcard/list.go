package modelcard

// Files returns every file that the card names.
func (c *Card) Files() []File {
	var files []File
	for _, f := range []*namedFile{c.ModelInfo, c.Tokenizer, c.Formatter, c.Template, c.Generation} {
		if f != nil {
			files = append(files, f.file)
		}
	}
	return append(files, c.ExtraFiles...)
}
