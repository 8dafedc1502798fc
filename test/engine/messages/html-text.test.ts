/** What body_search reads of an HTML body: the text that is seen, in linear time. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { htmlText } from '../../../engine/messages/html-text.ts'

suite('the text of an HTML body', () => {
  const table: readonly (readonly [string, string])[] = [
    ['<p>Gr&ouml;&szlig;e &#252;ber &#xe4;lles &amp;lt; A&nbsp;B</p>', 'Größe über älles &lt; A B'],
    ['<b>R</b>ech<i>nun</i>g', 'Rechnung'],
    ['Rech&shy;nung zero\u200bwidth', 'Rechnung zerowidth'],
    ['one<br>two<p>three</p><table><tr><td>four</td><td>five</td></tr></table>', 'one two three four five'],
    ['<head><meta charset=utf-8><title>unseen</title><div>no end of the head', 'no end of the head'],
    ['<style>.gold { }</style><script>if (a < b) gold()</script><!-- gold --><a title="gold" href="gold">x</a>', 'x'],
    ['<STYLE>gold</STYLE>seen<style>no end gold', 'seen'],
    ['a < b &unknown; & c &eacute', 'a < b &unknown; & c é'],
    ['<!--[if mso]>gold<![endif]-->fin', 'fin'],
    ['plain', 'plain'],
    ['', ''],
  ]
  for (const [html, text] of table) test(JSON.stringify(html), () => assert.equal(htmlText(html), text))

  test('comes in linear time from whatever is sent', () => {
    const pieces = ['<div>', '<div></span>', '<', '&', '<!--', '<style>', '</', '<a b="', '<script><', '<p><b>', '&#']
    for (const piece of pieces) htmlText(piece.repeat(200_000))
    // Quadratic work would take minutes for these, and the test its time limit.
    htmlText('<div>'.repeat(500_000) + '</p>'.repeat(500_000))
  })
})
