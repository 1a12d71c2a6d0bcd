//go:build linux

package sender

func http2Rows(m *matrix) {}
func rawRows(m *matrix)   {}
