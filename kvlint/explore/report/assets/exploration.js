
(() => {
  // A click selects a command as it is; where the browser lets a page write to the clipboard, a button copies it.
  if (!navigator.clipboard) return;
  for (const button of document.querySelectorAll(".copy")) {
    const command = button.parentElement.querySelector("code");
    button.hidden = false;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(command.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(command);
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
  }
})();
