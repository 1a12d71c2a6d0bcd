//go:build linux

package sender

func squidRows(m *matrix) {}
func http2Rows(m *matrix) {}
func rawRows(m *matrix)   {}
