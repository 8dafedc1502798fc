/** What body_search reads of an HTML body: the text that is seen, in linear time. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { htmlText, turnLength } from '../../../engine/messages/bodies.ts'

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
  for (const [html, text] of table)
    test(JSON.stringify(html), async () => {
      assert.equal(await htmlText(html), text)
      // The same wherever the end of a turn falls in it.
      const inTwo = await htmlText(`x ${html}`)
      for (let at = 1; at < html.length; at += 1)
        assert.equal(
          (await htmlText('x'.repeat(turnLength - at - 1) + ` ${html}`)).replace(/^x+/, 'x'),
          inTwo,
          `cut at ${at}`,
        )
    })

  test('comes in linear time from whatever is sent', async () => {
    const pieces = ['<div>', '<div></span>', '<', '&', '<!--', '<style>', '</', '<a b="', '<script><', '<p><b>', '&#']
    for (const piece of pieces) await htmlText(piece.repeat(200_000))
    // Quadratic work would take minutes for these, and the test its time limit.
    await htmlText('<div>'.repeat(500_000) + '</p>'.repeat(500_000))
  })
})
