package jsonline

var Unescape = unescape
