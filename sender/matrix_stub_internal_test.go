//go:build linux

package sender

func nodeRows(m *matrix)    {}
func pythonRows(m *matrix)  {}
func squidRows(m *matrix)   {}
func http2Rows(m *matrix)   {}
func rawRows(m *matrix)     {}
