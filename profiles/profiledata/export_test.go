package profiledata

// WriteNPY lets tests make files of other arrays than a table's.
var WriteNPY = writeNPY
