/** The words of the connect wizard in German. */
import type { Words } from './en.ts'

export const de: Words = {
  language: 'Deutsch',
  otherLanguages: 'Sprache',
  title: 'Postfach verbinden',
  asks: (app) => `${app} bittet um Zugang zu Ihrem Postfach`,
  asksAgain: (app) => `${app} braucht Ihre Anmeldung noch einmal`,
  stepOf: (step, all) => `Schritt ${step} von ${all}`,
  privacy: (app) =>
    `${app} kann die E-Mails in diesem Postfach danach lesen und ändern. Ihr Passwort wird verschlüsselt aufbewahrt; ${app} sieht es nicht.`,
  privacySignIn: (app) =>
    `${app} kann die E-Mails in diesem Postfach danach lesen und ändern. Sie können das in Ihrem Konto jederzeit widerrufen.`,

  emailLabel: 'E-Mail-Adresse',
  emailHint: 'Die Adresse des Postfachs, das Sie verbinden möchten.',
  next: 'Weiter',
  emailMissing: 'Bitte geben Sie eine E-Mail-Adresse ein, zum Beispiel anna@example.com.',
  doubt: 'Bitte prüfen Sie die Adresse',
  emailShort:
    'Das Ende dieser Adresse scheint zu fehlen, zum Beispiel .de. Wenn die Adresse stimmt, drücken Sie noch einmal auf „Weiter“.',
  didYouMean: (similar: string) =>
    `Meinten Sie ${similar}? Wenn Ihre Adresse stimmt, drücken Sie noch einmal auf „Weiter“.`,
  useSimilar: (similar: string) => `${similar} verwenden`,

  loginTitle: 'Am Postfach anmelden',
  passwordLabel: 'Passwort des Postfachs',
  showPassword: 'Zeigen',
  hidePassword: 'Verbergen',
  appPassword: (provider) => ({
    title:
      provider === undefined ? 'Viele Anbieter verlangen ein App-Passwort' : `${provider} verlangt ein App-Passwort`,
    text: 'Ein App-Passwort gilt nur für ein einziges Programm und lässt sich jederzeit zurücknehmen. Ihr Anbieter erklärt es hier:',
  }),
  imapOff: {
    title: 'Schalten Sie zuerst IMAP ein',
    text: 'Ihr Anbieter lässt Programme erst in das Postfach, wenn IMAP in den Einstellungen eingeschaltet ist. Er erklärt es hier:',
  },
  googlePassword: {
    title: 'Google verlangt ein App-Passwort',
    text: 'Google nimmt das Passwort Ihres Google-Kontos hier nicht an. Schalten Sie in Ihrem Google-Konto die Bestätigung in zwei Schritten ein, erstellen Sie dann ein App-Passwort, und geben Sie es hier ein.',
    link: 'App-Passwort bei Google erstellen',
  },
  microsoftPassword: (app) => ({
    title: 'Microsoft nimmt hier kein Passwort an',
    text: `Outlook, Hotmail und Microsoft 365 lassen Programme nur nach einer Anmeldung bei Microsoft ein, und ${app} hat sie nicht eingerichtet. Fragen Sie ${app} danach.`,
  }),
  helpPage: 'Hilfe Ihres Anbieters',
  signIn: (provider) => `Mit ${provider} anmelden`,
  or: 'oder mit einem Passwort',
  leavingTitle: (provider: string) => `Weiter zu ${provider}`,
  leavingText: 'Sie melden sich dort an und kommen von selbst hierher zurück. Ihr Passwort sehen wir nicht.',
  leavingGo: (provider: string) => `Weiter zu ${provider}`,
  connect: 'Verbinden',
  otherAddress: 'Andere Adresse verwenden',
  settingsTitle: 'Server-Einstellungen',
  settingsUnknown:
    'Wir kennen den Mailserver dieser Adresse nicht. Ihr Anbieter oder Ihre Administration nennt Ihnen diese Einstellungen; hier steht, was wir vermuten.',
  serverLabel: 'IMAP-Server',
  portLabel: 'Port',
  securityLabel: 'Verschlüsselung',
  securityTls: 'TLS von Anfang an (meist Port 993)',
  securityStartTls: 'STARTTLS (meist Port 143)',
  usernameLabel: 'Benutzername',
  usernameHint: 'Oft die ganze E-Mail-Adresse.',
  passwordMissing: 'Bitte geben Sie das Passwort des Postfachs ein.',
  serverMissing: 'Bitte geben Sie den Namen des IMAP-Servers ein, zum Beispiel imap.example.com.',
  portWrong: 'Der Port ist eine Zahl von 1 bis 65535, meist 993.',
  usernameMissing: 'Bitte geben Sie den Benutzernamen des Postfachs ein.',
  tooLong: 'Das ist zu lang oder enthält Zeichen, die nicht gesendet werden können.',

  connectingTitle: 'Die Verbindung wird hergestellt',
  connectingHint: 'Das dauert einige Sekunden. Die Seite geht von selbst weiter.',
  progress: {
    finding: 'Mailserver suchen',
    login: 'Anmelden',
    folders: 'Ins Postfach sehen',
    saving: 'Verbindung speichern',
  },
  state: { done: 'erledigt', now: 'läuft', later: 'noch nicht' },

  doneTitle: 'Ihr Postfach ist verbunden',
  doneClose: 'Sie können diese Seite jetzt schließen.',
  doneText: (app) => `Sie können jetzt zu ${app} zurückkehren.`,
  cancel: (app) => `Abbrechen, zurück zu ${app}`,
  back: (app) => `Zurück zu ${app}`,

  problem: 'Das hat nicht geklappt',
  serverSaid: 'Im Einzelnen',
  failures: {
    auth_rejected:
      'Der Mailserver hat diesen Benutzernamen und dieses Passwort nicht angenommen. Prüfen Sie beide. Viele Anbieter nehmen hier nicht Ihr übliches Passwort, sondern ein App-Passwort.',
    auth_unavailable:
      'Der Mailserver kann im Moment keine Anmeldung prüfen. Versuchen Sie es in einigen Minuten noch einmal.',
    consent_lost:
      'Ihr Anbieter hat uns keinen Zugang gegeben. Melden Sie sich noch einmal an, und stimmen Sie dem Zugang zu.',
    permission:
      'Der Mailserver lässt keine Programme in dieses Postfach. Schalten Sie IMAP in den Einstellungen Ihres Postfachs ein, oder bitten Sie Ihre Administration darum.',
    throttled:
      'Es gab in kurzer Zeit zu viele Anmeldungen. Warten Sie einige Minuten, und versuchen Sie es dann noch einmal.',
    connection_limit:
      'Der Mailserver erlaubt keine weitere Verbindung zu diesem Postfach. Schließen Sie andere Mailprogramme, oder warten Sie einige Minuten, und versuchen Sie es dann noch einmal.',
    network:
      'Die Verbindung zum Mailserver ist abgebrochen. Versuchen Sie es noch einmal. Geschieht es wieder, prüfen Sie die Server-Einstellungen.',
    tls: 'Es kommt keine sichere Verbindung zum Mailserver zustande. Prüfen Sie Servernamen, Port und Verschlüsselung.',
    protocol:
      'Was geantwortet hat, ist kein IMAP-Server, oder einer, den wir nicht verstehen. Prüfen Sie Servernamen und Port: IMAP hat 993 oder 143, nicht den Port für das Senden.',
    timeout:
      'Der Mailserver hat nicht rechtzeitig geantwortet. Prüfen Sie Servernamen und Port, oder versuchen Sie es später noch einmal.',
    private_address:
      'Dieser Server steht nicht im öffentlichen Internet. Prüfen Sie den Servernamen. Ihre Administration weiß, unter welchem Namen er von außen zu erreichen ist.',
    connection_refused:
      'Der Server nimmt auf diesem Port keine Verbindung an. Prüfen Sie Servernamen und Port: meist 993, oder 143 für STARTTLS.',
    host_not_found: 'Einen Server dieses Namens gibt es nicht. Prüfen Sie, wie der Servername geschrieben ist.',
    token_rejected:
      'Sie haben sich angemeldet, aber der Mailserver lässt uns nicht in das Postfach. Schalten Sie IMAP in den Einstellungen Ihres Postfachs ein, und melden Sie sich dann noch einmal an.',
    consent_denied:
      'Dem Zugang zu Ihrem Postfach wurde nicht zugestimmt. Melden Sie sich noch einmal an und stimmen Sie zu, wenn Sie es verbinden wollen.',
    consent_partial:
      'Einem Zugang wurde zugestimmt, aber nicht dem zu Ihren E-Mails. Melden Sie sich noch einmal an, und lassen Sie alle Häkchen stehen.',
    consent_short:
      'Ihr Anbieter hat nur für kurze Zeit Zugang gegeben. Entfernen Sie die Anwendung dort in Ihrem Konto aus der Liste der verbundenen Anwendungen, und melden Sie sich dann noch einmal an.',
    provider_down: 'Ihr Anbieter antwortet nicht. Versuchen Sie es in einigen Minuten noch einmal.',
    provider_refuses:
      'Ihr Anbieter nimmt diese Anwendung nicht an. Gehen Sie zurück zur Anwendung, und sagen Sie es deren Betreibern.',
    sign_in_old: 'Diese Anmeldung gilt nicht mehr. Melden Sie sich noch einmal an.',
    other_address:
      'Sie haben sich mit einer anderen Adresse angemeldet. Melden Sie sich noch einmal mit der Adresse an, die hier steht, oder beginnen Sie mit der anderen von vorn.',
    taken:
      'Dieser Link wird gerade in einem anderen Fenster verwendet. Warten Sie einige Sekunden, und versuchen Sie es dann hier noch einmal.',
    conflict:
      'Auf diesem Weg lässt sich dieses Postfach nicht verbinden. Gehen Sie zurück zur Anwendung, und fragen Sie deren Betreiber.',
    ours: 'Bei uns ist etwas schiefgegangen. Versuchen Sie es in einigen Minuten noch einmal.',
  },

  ends: {
    unknown: {
      title: 'Dieser Link ist nicht bekannt',
      text: 'Vielleicht wurde er nicht ganz kopiert. Gehen Sie zurück zu der Anwendung, die Sie hierher geschickt hat, und beginnen Sie dort von vorn.',
    },
    used: {
      title: 'Dieser Link ist schon verwendet',
      text: 'Mit ihm wurde ein Postfach verbunden, und er gilt nur einmal. Um ein weiteres zu verbinden, gehen Sie zurück zur Anwendung.',
    },
    expired: {
      title: 'Dieser Link ist abgelaufen',
      text: 'Ein solcher Link gilt 24 Stunden. Gehen Sie zurück zu der Anwendung, die Sie hierher geschickt hat: Sie macht einen neuen.',
    },
    spent: {
      title: 'Zu viele Versuche',
      text: 'Die Anmeldung ist über diesen Link so oft gescheitert, dass er nicht mehr gilt. Gehen Sie zurück zur Anwendung: Sie macht einen neuen.',
    },
    outdated: {
      title: 'Diese Seite ist veraltet',
      text: 'Sie war zu lange offen, oder Ihr Browser behält keine Cookies. Es wurde nichts weitergegeben.',
    },
    sign_in_unknown: {
      title: 'Diese Anmeldung ist nicht bekannt',
      text: 'Sie hat zu lange gedauert, oder wir wurden inzwischen neu gestartet. Gehen Sie zurück zu der Anwendung, die Sie hierher geschickt hat, und beginnen Sie dort von vorn.',
    },
    other_browser: {
      title: 'Diese Anmeldung gehört zu einem anderen Browser',
      text: 'Sie muss in dem Browser enden, in dem sie begonnen wurde. Gehen Sie in diesem zurück zur Anwendung, und beginnen Sie dort von vorn.',
    },
    busy: {
      title: 'Zu viele auf einmal',
      text: 'Aus Ihrem Netz kamen sehr viele Formulare. Warten Sie eine Minute, und versuchen Sie es dann noch einmal.',
    },
    broken: {
      title: 'Bei uns ist etwas schiefgegangen',
      text: 'Versuchen Sie es in einigen Minuten noch einmal. Geschieht es wieder, sagen Sie es den Betreibern der Anwendung.',
    },
  },
  otherMailbox: (tried, asked) => ({
    title: 'Ein anderes Postfach wurde gewählt',
    text: `Dieser Link verbindet ein Postfach, und in einem anderen Tab wurde ${tried} gewählt. ${asked} ist nicht verbunden.`,
  }),
  startAgain: 'Von vorn beginnen',
}
